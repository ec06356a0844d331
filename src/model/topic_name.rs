//! Rules for topic names.

use super::limits::TOPIC_NAME_BYTES_MAX;

/// Topics that belong to the broker; clients may create and read but not write
/// them.
pub const INTERNAL: &[&str] = &["__consumer_offsets", "__transaction_state", "__share_group_state"];

/// The metadata log. For clients it does not exist, and none may create it.
pub const CLUSTER_METADATA: &str = "__cluster_metadata";

/// Whether clients may not write to this topic.
#[must_use]
pub fn is_internal(name: &str) -> bool {
    INTERNAL.contains(&name)
}

/// Why a string cannot name a topic.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NameError {
    /// No characters.
    #[error("a topic name needs at least one character")]
    Empty,
    /// `.` or `..`, which are directories.
    #[error("topic name '{0}' is a directory of its own kind; '.' and '..' are not allowed")]
    Dots(String),
    /// Over 249 bytes.
    #[error("topic name has {0} characters, at most {TOPIC_NAME_BYTES_MAX} are allowed")]
    TooLong(usize),
    /// A character outside of the set.
    #[error("topic name '{0}' has a character other than ASCII letters, digits, '.', '_' and '-'")]
    Character(String),
}

/// Checks a name.
///
/// # Errors
/// The first rule that it breaks.
pub fn validate(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name == "." || name == ".." {
        return Err(NameError::Dots(name.to_owned()));
    }
    if name.len() > TOPIC_NAME_BYTES_MAX {
        return Err(NameError::TooLong(name.len()));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if !name.bytes().all(allowed) {
        return Err(NameError::Character(name.chars().take(TOPIC_NAME_BYTES_MAX).collect()));
    }
    Ok(())
}

/// The name under which `a.b` and `a_b` are the same: metric names cannot
/// tell them apart, so a cluster holds only one of them.
#[must_use]
pub fn collision_key(name: &str) -> String {
    name.replace('.', "_")
}

/// Whether another name could collide with this one.
#[must_use]
pub fn can_collide(name: &str) -> bool {
    name.contains(['.', '_'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c20_names() {
        let long = "a".repeat(249);
        for good in ["a", "A-b_c.9", "...", "__consumer_offsets", &long] {
            assert_eq!(validate(good), Ok(()), "{good}");
        }
        let too_long = "a".repeat(250);
        for bad in ["", ".", "..", "a b", "a/b", "ä", "a\0", "a:b", &too_long] {
            let error = validate(bad).unwrap_err();
            assert!(!error.to_string().is_empty(), "{bad}");
        }
    }

    #[test]
    fn c103_dot_and_underscore_are_one_name() {
        assert_eq!(collision_key("a.b_c"), collision_key("a_b.c"));
        assert_ne!(collision_key("a-b"), collision_key("a_b"));
        assert!(can_collide("a.b") && can_collide("a_b") && !can_collide("a-b"));
    }
}
