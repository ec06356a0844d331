//! One core: executor, ring, pump, and the thread that guards them.

pub mod runtime;
pub mod watchdog;
