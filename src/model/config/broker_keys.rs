//! Rows.
use super::key::Key;
pub(super) const KEYS: &[Key] = &[];
