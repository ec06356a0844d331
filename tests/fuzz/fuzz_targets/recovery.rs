//! Any bytes as a journal that a start finds: as they are, and as frames of
//! groups whose checksums hold. No panic, and no frame that counts twice.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream::log::fuzzing::{journal_of, replay_bytes};

fuzz_target!(|input: &[u8]| {
    replay_bytes(input);
    let frames = replay_bytes(&journal_of(input));
    assert!(frames <= input.len() / 80);
});
