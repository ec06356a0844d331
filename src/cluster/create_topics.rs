//! CreateTopics.
