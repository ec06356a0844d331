//! Tests of the whole layer on the simulated machine.
