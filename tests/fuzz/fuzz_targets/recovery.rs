//! Any bytes as what a start finds: as a journal, as frames of groups whose
//! checksums hold, as the body of a checkpoint. No panic, no frame that counts
//! twice, and what counts of a log is one run of bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream::log::fuzzing::{checkpoint_body, journal_of, replay_bytes};

fuzz_target!(|input: &[u8]| {
    replay_bytes(input);
    let frames = replay_bytes(&journal_of(input));
    assert!(frames <= input.len() / 80);
    checkpoint_body(input);
});
