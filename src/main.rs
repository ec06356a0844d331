//! The `millstream` binary: the command line and nothing else.

fn main() {}
