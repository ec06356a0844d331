//! Where new partitions go.
