//! CRC-32C (Castagnoli), the checksum of a batch from its attributes to its
//! end. `benches/record.rs` says why this crate: see `docs/performance.md`.

/// CRC-32C of `bytes`.
#[inline]
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// CRC-32C of bytes that come in pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Crc32c(u32);

impl Crc32c {
    /// The checksum of no bytes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on from `crc`, the checksum of all bytes so far.
    #[must_use]
    pub fn resume(crc: u32) -> Self {
        Self(crc)
    }

    /// Adds the next piece.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, bytes);
    }

    /// The checksum of all pieces so far.
    #[must_use]
    pub fn value(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        // RFC 3720, appendix B.4, and the catalogue's check value.
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&rising), 0x46dd_794e);
    }

    /// Bit by bit, from the polynomial: slow and hard to get wrong.
    fn reference(bytes: &[u8]) -> u32 {
        let mut crc = !0u32;
        for byte in bytes {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            }
        }
        !crc
    }

    #[test]
    fn every_length_and_split_agrees_with_the_definition() {
        let bytes: Vec<u8> =
            (0..9000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for len in (0..1100).chain([4095, 4096, 4097, 8191, 8999]) {
            for start in [0, 1, 7] {
                let part = &bytes[start.min(len)..len];
                assert_eq!(crc32c(part), reference(part), "{start}..{len}");
                let (left, right) = part.split_at(part.len() / 3);
                let mut crc = Crc32c::new();
                crc.update(left);
                let mut crc = Crc32c::resume(crc.value());
                crc.update(right);
                assert_eq!(crc.value(), crc32c(part));
            }
        }
    }
}
