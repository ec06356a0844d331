//! A real broker process, judged from outside through its socket.
#![allow(clippy::print_stderr, missing_docs, reason = "a test binary")]

#[path = "broker/admin.rs"]
mod admin;
#[path = "broker/advertised.rs"]
mod advertised;
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod common;
#[path = "broker/offsets.rs"]
mod offsets;
