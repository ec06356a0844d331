//! The Kafka protocol as bytes: frames, headers, primitive readers and
//! writers, one generated module per API, and hand-written cursors for the
//! two requests that carry records.
//!
//! Everything here is pure: it runs on any core, owns nothing but buffers,
//! and knows no file, socket, topic or offset rule. The one source of
//! protocol facts (keys, versions, fields) is the schema table in
//! `src/wire/schema/*.txt`; `tests/wire_codegen.rs` turns it into
//! `generated/` and fails when the committed output is not current.
//!
//! Invariants:
//! - nothing is allocated before its length was checked against the bytes
//!   that are really there, and the arrays of one message stay within the
//!   [`Reader`]'s budget;
//! - decoding cannot recurse without bound: the schema has no recursive
//!   type, so nesting is limited by construction;
//! - a message is read to its last byte, or it is an error.

pub mod api;
pub mod error;
pub mod fetch;
pub mod frame;
pub mod generated;
pub mod header;
pub mod message;
pub mod produce;
pub mod reader;
pub mod topic_ref;
pub mod writer;

pub use api::{ApiVersionRange, VersionCheck};
pub use error::WireError;
pub use fetch::{FetchOutcome, FetchResponsePlan, FetchResponseTop, FetchView, Piece, RecordsRef};
pub use generated::ApiKey;
pub use header::{RequestHeader, RequestPrefix, ResponseHeader};
pub use message::{Message, Request, Response};
pub use produce::{ProduceOutcome, ProduceResponseWriter, ProduceView, ProduceWalk};
pub use reader::Reader;
pub use topic_ref::TopicRef;
pub use writer::Writer;
