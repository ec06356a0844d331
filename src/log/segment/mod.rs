//! Segments: payload in exactly Kafka's format. The open one lives in tail
//! chunks and is written behind; closed ones are files.

pub(crate) mod head;
pub(crate) mod index;
pub(crate) mod names;
pub(crate) mod tail;
