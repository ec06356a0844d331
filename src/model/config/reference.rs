//! Text about the keys: for `--help`, the config file reference, the matrix.

/// The reference of all keys, as Markdown.
#[must_use]
pub fn reference() -> String {
    todo!()
}

/// The keys that are accepted without effect, as Markdown table rows.
#[must_use]
pub fn matrix() -> String {
    todo!()
}
