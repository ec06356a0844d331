//! A real broker process under load: many idle connections beside one that
//! floods, slow consumers, stops and starts. Counts, memory bounds and refusals
//! are asserted; times are printed, since they are the machine's.
#![allow(clippy::print_stderr, clippy::print_stdout, missing_docs, reason = "a test binary")]
#![allow(clippy::disallowed_methods, reason = "real time and threads are what is tested")]

#[allow(dead_code, reason = "each test binary uses a part of it")]
mod common;
#[path = "broker_load/descriptors.rs"]
mod descriptors;
#[path = "broker_load/figures.rs"]
mod figures;
#[path = "broker_load/flood.rs"]
mod flood;
#[path = "broker_load/lifecycle.rs"]
mod lifecycle;
#[path = "broker_load/records.rs"]
mod records;
#[path = "broker_load/slow.rs"]
mod slow;
