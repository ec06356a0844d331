//! Names of the files of a partition's directory, as Kafka makes them.

use std::path::{Path, PathBuf};

use crate::model::Offset;

/// A kind of file that belongs to an offset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Kind {
    Log,
    Index,
    TimeIndex,
    Snapshot,
}

impl Kind {
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Index => "index",
            Self::TimeIndex => "timeindex",
            Self::Snapshot => "snapshot",
        }
    }
}

/// Path of a file: 20 digits and the suffix.
pub(crate) fn path(dir: &Path, offset: Offset, kind: Kind) -> PathBuf {
    dir.join(format!("{:020}.{}", offset.0, kind.suffix()))
}

/// The offset and kind that a name stands for.
pub(crate) fn parse(name: &str) -> Option<(Offset, Kind)> {
    let (digits, suffix) = name.split_once('.')?;
    if digits.len() != 20 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let kind = [Kind::Log, Kind::Index, Kind::TimeIndex, Kind::Snapshot]
        .into_iter()
        .find(|k| k.suffix() == suffix)?;
    Some((Offset(digits.parse().ok()?), kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kafkas() {
        let name = path(Path::new("/d"), Offset(368_769), Kind::TimeIndex);
        assert_eq!(name, Path::new("/d/00000000000000368769.timeindex"));
        assert_eq!(parse("00000000000000368769.log"), Some((Offset(368_769), Kind::Log)));
        for bad in ["1.log", "0000000000000036876x.log", "00000000000000368769.txt", "x"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
