//! The journal: every decision of a shard's logs, in order. Groups of frames
//! (`group`, `frame`), the files they lie in (`files`), what writes them
//! (`writer`) and what reads them back (`reader`).

pub(crate) mod files;
pub(crate) mod frame;
pub(crate) mod group;
pub(crate) mod reader;
pub(crate) mod writer;
