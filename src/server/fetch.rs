//! Produce. Signatures first.
