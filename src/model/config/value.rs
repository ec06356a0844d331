//! Reading and checking one value.

use super::key::{Check, Key, Kind};
use super::store::ConfigError;
use crate::model::limits::CONFIG_VALUE_BYTES_MAX;

/// The value as it is stored: without blanks around it, numbers and booleans
/// in their plain spelling.
///
/// # Errors
/// When it is not a value of the key's type, or not an allowed one.
pub(super) fn canonical(key: &Key, value: &str) -> Result<String, ConfigError> {
    parse(key, value.trim()).ok_or_else(|| ConfigError::BadValue {
        key: key.name.to_owned(),
        // A password must not come back in an error message.
        value: if key.is_sensitive() { "[hidden]".to_owned() } else { value.to_owned() },
        allowed: allowed(key),
    })
}

fn parse(key: &Key, value: &str) -> Option<String> {
    if value.len() > CONFIG_VALUE_BYTES_MAX {
        return None;
    }
    let canonical = match key.kind {
        Kind::Boolean if value.eq_ignore_ascii_case("true") => "true".to_owned(),
        Kind::Boolean if value.eq_ignore_ascii_case("false") => "false".to_owned(),
        Kind::Boolean => return None,
        Kind::Int => i64::from(value.parse::<i32>().ok()?).to_string(),
        Kind::Short => i64::from(value.parse::<i16>().ok()?).to_string(),
        Kind::Long => value.parse::<i64>().ok()?.to_string(),
        Kind::Double => value.parse::<f64>().ok().map(|_| value.to_owned())?,
        Kind::List => items(value).collect::<Vec<_>>().join(","),
        Kind::String | Kind::Class | Kind::Password => value.to_owned(),
    };
    let fits = match key.check {
        Check::Any => true,
        Check::Range(low, high) => (low..=high).contains(&canonical.parse().ok()?),
        Check::RangeOr(low, high, or) => {
            let number: i64 = canonical.parse().ok()?;
            number == or || (low..=high).contains(&number)
        }
        Check::Fraction => (0.0..=1.0).contains(&canonical.parse::<f64>().ok()?),
        Check::OneOf(words) => words.contains(&canonical.as_str()),
        Check::OneOfAnyCase(words) => words.iter().any(|w| w.eq_ignore_ascii_case(&canonical)),
        Check::ListOf(words) => items(&canonical).all(|item| words.contains(&item)),
        Check::ThrottledReplicas => are_throttled_replicas(&canonical),
        Check::Size(least) => size(&canonical)? >= least,
    };
    fits.then_some(canonical)
}

/// The items of a list, without blanks around them.
pub(super) fn items(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|_| !value.is_empty())
}

fn are_throttled_replicas(value: &str) -> bool {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let pair = |item: &str| item.split_once(':').is_some_and(|(p, b)| digits(p) && digits(b));
    // Kafka takes a comma at the end here, and only here.
    value == "*" || items(value.trim_end_matches(',')).all(pair)
}

/// Bytes of a size such as `64m`.
pub(super) fn size(value: &str) -> Option<u64> {
    let (digits, shift) = match value.as_bytes().last()?.to_ascii_lowercase() {
        b'k' => (&value[..value.len() - 1], 10),
        b'm' => (&value[..value.len() - 1], 20),
        b'g' => (&value[..value.len() - 1], 30),
        _ => (value, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// What a key takes, for messages and the reference.
pub(super) fn allowed(key: &Key) -> String {
    let kind = key.kind.name();
    match key.check {
        Check::Any => match key.kind {
            Kind::Boolean => "true or false are allowed".to_owned(),
            _ => format!("any {kind} is allowed"),
        },
        Check::Range(low, i64::MAX) => format!("{kind} values from {low} on are allowed"),
        Check::Range(low, high) => format!("{kind} values from {low} to {high} are allowed"),
        Check::RangeOr(low, high, or) => {
            format!("{kind} values from {low} to {high}, or {or}, are allowed")
        }
        Check::Fraction => "values from 0 to 1 are allowed".to_owned(),
        Check::OneOf([word]) => format!("only {word} is allowed"),
        Check::OneOf(words) | Check::OneOfAnyCase(words) => {
            format!("one of {} is allowed", words.join(", "))
        }
        Check::ListOf(words) => {
            format!("a list of {} is allowed", words.join(", "))
        }
        Check::ThrottledReplicas => "a list of partition:broker pairs, or *, is allowed".to_owned(),
        Check::Size(least) => {
            format!("a number of bytes, with k, m or g if wanted, from {least} on is allowed")
        }
    }
}
