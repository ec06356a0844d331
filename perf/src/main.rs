//! The load tool. Empty until the comparison harness lands.

fn main() {}
