//! Zigzag varints as records use them: at most 5 bytes for an `i32`, 10 for an
//! `i64`, and no bit beyond the type. (Java drops such bits silently; here
//! they are a fault, because two readers would disagree about the value.)

use super::error::Fault;

/// Undoes zigzag.
#[inline]
pub(super) const fn unzigzag32(raw: u32) -> i32 {
    (raw >> 1) as i32 ^ -((raw & 1) as i32)
}

/// Undoes zigzag.
#[inline]
pub(super) const fn unzigzag64(raw: u64) -> i64 {
    (raw >> 1) as i64 ^ -((raw & 1) as i64)
}

/// Reads an `i32` at `*at`, which moves behind it only on success.
#[inline]
pub(super) fn read_i32(bytes: &[u8], at: &mut usize) -> Result<i32, Fault> {
    // One and two bytes are nearly all that occurs: lengths below 8 KiB.
    match bytes.get(*at..) {
        Some([first, ..]) if *first < 0x80 => {
            *at += 1;
            Ok(unzigzag32(u32::from(*first)))
        }
        Some([first, second, ..]) if *second < 0x80 => {
            *at += 2;
            Ok(unzigzag32(u32::from(*first & 0x7f) | u32::from(*second) << 7))
        }
        _ => {
            let raw = read_long_form(bytes, at, 32)?;
            Ok(unzigzag32(raw as u32))
        }
    }
}

/// Reads an `i64` at `*at`, which moves behind it only on success.
#[inline]
pub(super) fn read_i64(bytes: &[u8], at: &mut usize) -> Result<i64, Fault> {
    match bytes.get(*at..) {
        Some([first, ..]) if *first < 0x80 => {
            *at += 1;
            Ok(unzigzag64(u64::from(*first)))
        }
        Some([first, second, ..]) if *second < 0x80 => {
            *at += 2;
            Ok(unzigzag64(u64::from(*first & 0x7f) | u64::from(*second) << 7))
        }
        _ => Ok(unzigzag64(read_long_form(bytes, at, 64)?)),
    }
}

#[inline(never)]
fn read_long_form(bytes: &[u8], at: &mut usize, bits: u32) -> Result<u64, Fault> {
    let mut raw = 0u64;
    let mut shift = 0;
    for (index, byte) in bytes.get(*at..).unwrap_or_default().iter().enumerate() {
        let part = u64::from(byte & 0x7f);
        // The last byte has room for the type's remaining bits only.
        if shift >= bits || (bits - shift < 7 && part >> (bits - shift) != 0) {
            return Err(Fault::Varint);
        }
        raw |= part << shift;
        if *byte < 0x80 {
            *at += index + 1;
            return Ok(raw);
        }
        shift += 7;
    }
    Err(Fault::Truncated)
}

/// Appends an `i32`.
pub(super) fn write_i32(out: &mut Vec<u8>, value: i32) {
    write_raw(out, u64::from((value << 1 ^ value >> 31) as u32));
}

/// Appends an `i64`.
pub(super) fn write_i64(out: &mut Vec<u8>, value: i64) {
    write_raw(out, (value << 1 ^ value >> 63) as u64);
}

fn write_raw(out: &mut Vec<u8>, mut raw: u64) {
    while raw >= 0x80 {
        out.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges_round_trip() {
        for value in [0, -1, 1, 63, -64, 64, -65, 8191, 8192, i32::MAX, i32::MIN] {
            let mut out = Vec::new();
            write_i32(&mut out, value);
            let mut at = 0;
            assert_eq!(read_i32(&out, &mut at), Ok(value));
            assert_eq!(at, out.len());
        }
        for value in [0, -1, i64::MAX, i64::MIN, 1 << 35, -(1 << 35)] {
            let mut out = Vec::new();
            write_i64(&mut out, value);
            let mut at = 0;
            assert_eq!(read_i64(&out, &mut at), Ok(value));
            assert_eq!(at, out.len());
        }
    }

    #[test]
    fn too_many_bits_or_bytes_are_refused() {
        let mut at = 0;
        assert_eq!(read_i32(&[0xff, 0xff, 0xff, 0xff, 0x1f], &mut at), Err(Fault::Varint));
        assert_eq!(read_i32(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x00], &mut at), Err(Fault::Varint));
        assert_eq!(
            read_i64(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], &mut at),
            Err(Fault::Varint)
        );
        assert_eq!(read_i32(&[0x80, 0x80], &mut at), Err(Fault::Truncated));
        assert_eq!(read_i32(&[], &mut at), Err(Fault::Truncated));
        assert_eq!(read_i32(&[0], &mut usize::MAX.clone()), Err(Fault::Truncated));
        assert_eq!(at, 0, "a failed read does not move");
    }

    #[test]
    fn padded_forms_are_read() {
        let mut at = 0;
        assert_eq!(read_i32(&[0x82, 0x80, 0x00], &mut at), Ok(1));
        assert_eq!(at, 3);
    }

    proptest! {
        #[test]
        fn any_i64_round_trips(value: i64) {
            let mut out = Vec::new();
            write_i64(&mut out, value);
            prop_assert_eq!(read_i64(&out, &mut 0), Ok(value));
        }

        #[test]
        fn any_i32_round_trips(value: i32) {
            let mut out = Vec::new();
            write_i32(&mut out, value);
            prop_assert_eq!(read_i32(&out, &mut 0), Ok(value));
            // The longer reader agrees wherever the shorter one has a value.
            prop_assert_eq!(read_i64(&out, &mut 0), Ok(i64::from(value)));
        }
    }
}
