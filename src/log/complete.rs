//! Whether the journals still hold what the checkpoint says that they held. A
//! file that is gone, or whose header is, looks like one that never was; and yet
//! the last block of every log, and all of a small one, lies in journals only.

use super::config::DurabilityClass;
use super::error::{Error, FatalReason, Result};
use super::journal::files::owner_of;
use super::journal::reader;
use super::recovery::{JournalKey, Recovery, load};
use crate::io::Env;

/// What an operator can do.
pub(crate) const REMEDY: &str = "put the file back, or restore the directory from a copy";

impl<E: Env> Recovery<E> {
    /// Refuses a start that would lose what no crash loses, and tells what
    /// class `os` has lost.
    pub(crate) async fn check_complete(&self) -> Result<()> {
        let mut keys: Vec<_> = self.groups.keys().copied().collect();
        keys.sort_unstable_by_key(|(class, shard)| (class.index(), *shard));
        for key in keys {
            self.check_journal(key)?;
        }
        self.check_headers().await
    }

    /// The first group that replay did not find.
    fn next_of(&self, key: JournalKey) -> u64 {
        let last = self.chains.get(&key).and_then(|chain| chain.last);
        last.map_or_else(|| self.groups.get(&key).map_or(0, |g| g.first), |(number, _)| number + 1)
    }

    fn check_journal(&self, key: JournalKey) -> Result<()> {
        let (class, shard) = key;
        let (groups, next) = (self.groups[&key], self.next_of(key));
        let class = class.name();
        if next < groups.synced_end {
            let detail = format!(
                "{}: groups {next} to {} of journal {class}-{shard}, which the checkpoint counts \
                 on, are gone: {REMEDY}",
                self.suspects(key),
                groups.synced_end - 1,
            );
            return Err(Error::Fatal { reason: FatalReason::JournalDamaged, detail });
        }
        if next < groups.written_end {
            tracing::warn!(
                "{}: groups {next} to {} of journal {class}-{shard} are gone, and with them \
                 records of class {class} that were acknowledged: nothing else than a loss of \
                 power explains it",
                self.suspects(key),
                groups.written_end - 1,
            );
        }
        Ok(())
    }

    /// Says in which file the groups may have been.
    pub(crate) fn suspects(&self, key: JournalKey) -> String {
        let nameless = self.files.iter().filter(|f| f.header.is_none());
        let nameless: Vec<_> = nameless
            .filter(|f| f.path.file_name().and_then(|n| owner_of(n.to_str()?)) == Some(key))
            .map(|f| f.path.display().to_string())
            .collect();
        if !nameless.is_empty() {
            return format!("{} without a valid header", nameless.join(", "));
        }
        if let Some((file, pos)) = self.ends.get(&key) {
            let path = self.files[*file].path.display();
            return format!("{path}, no valid group at byte {pos}, or the file that followed it");
        }
        let (class, shard) = (key.0.name(), key.1);
        let of_key =
            self.files.iter().filter(|f| f.header.map(|h| (h.class, h.shard)) == Some(key));
        let found: Vec<_> = of_key.map(|f| f.path.display().to_string()).collect();
        let wanted = self.shared().config.journal_dir().join(format!("{class}-{shard}-*.journal"));
        match found.is_empty() {
            true => format!("{} is missing", wanted.display()),
            false => format!("{} is missing, or damaged: {}", wanted.display(), found.join(", ")),
        }
    }

    /// A header is durable before the first group: a file without one holds no
    /// group that counts, unless its header was damaged later. In class `os`
    /// neither was synced, and a power cut may have kept the groups alone.
    async fn check_headers(&self) -> Result<()> {
        let shared = self.shared();
        for found in self.files.iter().filter(|f| f.header.is_none()) {
            let name = found.path.file_name().and_then(|name| name.to_str());
            let Some(key) = name.and_then(owner_of) else { continue };
            let mut bytes = Vec::new();
            load(shared, found, &mut bytes, found.len).await?;
            let beyond = reader::without_header(&bytes, self.next_of(key));
            let Some((first, last)) = beyond else { continue };
            let path = found.path.display();
            let what = format!("{path}: no valid header, and yet groups {first} to {last}");
            if key.0 == DurabilityClass::Os {
                tracing::warn!("{what}, which are lost unless a loss of power took the header");
                continue;
            }
            let detail = format!("{what}, which count: {REMEDY}");
            return Err(Error::Fatal { reason: FatalReason::JournalDamaged, detail });
        }
        Ok(())
    }
}
