//! The codec against its schema, Kafka's own definitions, Kafka's own bytes,
//! the crate `kafka-protocol`, and broken input.

#[path = "wire/cursors.rs"]
mod cursors;
#[path = "wire/dispatch.rs"]
mod dispatch;
#[path = "wire/kafka_definitions.rs"]
mod kafka_definitions;
#[path = "wire/oracle.rs"]
mod oracle;
#[path = "wire/random.rs"]
mod random;
#[path = "wire/rounds.rs"]
mod rounds;
#[allow(dead_code, reason = "each test binary uses a part of it")]
#[path = "wire/schema.rs"]
mod schema;
#[path = "wire/vectors.rs"]
mod vectors;
