//! The files of a partition, read as Kafka's tools would read them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use millstream::record::batches;

use crate::model::LogModel;
use crate::plan::data_dir;

/// Files by path.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Checks the segments and indexes of a log at rest. `exact` after a clean
/// stop: no padding is left.
pub(crate) fn check(files: &Files, log: &LogModel, exact: bool) {
    let dir = data_dir().join(log.known.dir_name());
    let segments: Vec<(i64, &PathBuf, &Vec<u8>)> = files
        .iter()
        .filter(|(path, _)| path.parent() == Some(&dir) && has_extension(path, "log"))
        .map(|(path, bytes)| (base_of(path), path, bytes))
        .collect();
    let Some((first, _, _)) = segments.first() else {
        assert!(log.live.is_empty(), "{}: no segment", log.name());
        return;
    };
    assert!(*first <= log.start.1, "{}: starts at {first}, after its log start", log.name());
    let mut wanted = log.live.iter().skip_while(|b| b.end <= *first).peekable();
    for (i, (base, path, bytes)) in segments.iter().enumerate() {
        let next = segments.get(i + 1).map(|(base, _, _)| *base);
        let mut at = 0;
        let mut places = Vec::new();
        while let Some(batch) = wanted.next_if(|b| next.is_none_or(|next| b.base < next)) {
            assert!(batch.base >= *base, "{}: batch at {}", path.display(), batch.base);
            let found = bytes.get(at..at + batch.bytes.len());
            assert!(
                found == Some(&batch.bytes[..]),
                "{}: position {at} of {} is not the batch {}..{}",
                path.display(),
                bytes.len(),
                batch.base,
                batch.end
            );
            places.push((batch.end - 1, at as u32, batch.bytes.len()));
            at += batch.bytes.len();
        }
        let rest = &bytes[at..];
        let padding = next.is_none() && !exact && rest.iter().all(|b| *b == 0);
        assert!(
            rest.is_empty() || padding,
            "{}: {} bytes after {at}, the first batch of which is {:?}",
            path.display(),
            rest.len(),
            batches(rest).next()
        );
        check_index(files, path, *base, &places);
        check_time_index(
            files,
            path,
            *base,
            places.last().map_or(*base, |(last, _, _)| *last),
            log,
        );
    }
    assert!(wanted.peek().is_none(), "{}: files end before {:?}", log.name(), wanted.peek());
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|e| e == wanted)
}

fn base_of(path: &Path) -> i64 {
    let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
    stem.parse().unwrap_or_else(|_| panic!("{} has no offset in its name", path.display()))
}

/// Each entry names the last offset and the position of one batch, ascending.
fn check_index(files: &Files, log: &Path, base: i64, places: &[(i64, u32, usize)]) {
    let path = log.with_extension("index");
    let Some(bytes) = files.get(&path) else { return };
    let mut last = -1_i64;
    for entry in bytes.as_chunks::<8>().0 {
        let relative = u32::from_be_bytes(entry[..4].try_into().expect("four bytes"));
        let position = u32::from_be_bytes(entry[4..].try_into().expect("four bytes"));
        let offset = base + i64::from(relative);
        assert!(offset > last, "{}: {offset} after {last}", path.display());
        assert!(
            places.iter().any(|(end, at, _)| *end == offset && *at == position),
            "{}: entry {offset} at {position} is no batch",
            path.display()
        );
        last = offset;
    }
    assert_eq!(bytes.len() % 8, 0, "{}", path.display());
}

/// Entries ascend in both columns, stay within the file, and name a timestamp
/// that some batch up to there really has.
fn check_time_index(files: &Files, log: &Path, base: i64, end: i64, model: &LogModel) {
    let path = log.with_extension("timeindex");
    let Some(bytes) = files.get(&path) else { return };
    let (mut last_stamp, mut last_offset) = (i64::MIN, -1_i64);
    for entry in bytes.as_chunks::<12>().0 {
        let stamp = i64::from_be_bytes(entry[..8].try_into().expect("eight bytes"));
        let relative = u32::from_be_bytes(entry[8..].try_into().expect("four bytes"));
        let offset = base + i64::from(relative);
        let grows = stamp > last_stamp && offset > last_offset;
        assert!(
            grows,
            "{}: ({stamp}, {offset}) after ({last_stamp}, {last_offset})",
            path.display()
        );
        assert!(offset <= end, "{}: {offset} is past {end}", path.display());
        let real = model
            .live
            .iter()
            .filter(|b| b.base >= base && b.end <= offset + 1)
            .map(|b| b.summary.max_timestamp.0)
            .max();
        assert_eq!(real, Some(stamp), "{}: largest timestamp up to {offset}", path.display());
        (last_stamp, last_offset) = (stamp, offset);
    }
    assert_eq!(bytes.len() % 12, 0, "{}", path.display());
}
