//! A real broker process, judged from outside through its socket.
#![allow(clippy::print_stderr, missing_docs, reason = "a test binary")]

#[path = "broker/admin.rs"]
mod admin;
#[path = "broker/advertised.rs"]
mod advertised;
#[path = "broker/alter_configs.rs"]
mod alter_configs;
#[allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]
mod common;
#[path = "broker/connection.rs"]
mod connection;
#[path = "broker/fetch.rs"]
mod fetch;
#[path = "broker/hostile.rs"]
mod hostile;
#[path = "broker/offsets.rs"]
mod offsets;
#[path = "broker/produce.rs"]
mod produce;
#[allow(dead_code, reason = "each test binary uses a part of it")]
#[path = "wire/random.rs"]
mod random;
#[path = "broker/requests.rs"]
mod requests;
#[path = "broker/retention.rs"]
mod retention;
#[allow(dead_code, reason = "each test binary uses a part of it")]
#[path = "wire/schema.rs"]
mod schema;
#[path = "broker/startup.rs"]
mod startup;
#[path = "broker/torn.rs"]
mod torn;
