//! Logs come and go: creation, deletion with unlinks at a limited rate, and
//! what a crash left of deletions.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use ahash::AHashSet;

use super::config::KnownLog;
use super::epoch_cache::EpochCache;
use super::error::{Error, Result};
use super::journal::frame::{FrameHeader, FrameKind};
use super::rebuild::{make_dir, metadata_text};
use super::segment::tail::OpenSegment;
use super::set::LogHandle;
use super::state::{Log, Shared};
use crate::io::{Env, FileSystem as _, Task as _};
use crate::model::topic_name;
use crate::model::{LeaderEpoch, Offset, TopicId};

/// End of the name of a directory that is being deleted.
const DELETED: &str = "-delete";

/// End of the name of a directory that nobody knows, as in Kafka.
const STRAY: &str = "-stray";

/// Whether a directory's name is one that `rename_aside` gives.
fn is_set_aside(name: &str) -> bool {
    let parts = name.strip_suffix(DELETED).and_then(|name| name.rsplit_once('.'));
    parts.is_some_and(|(dir, id)| {
        is_partition(dir) && id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// Whether a directory's name is a topic's and a partition's index.
fn is_partition(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(topic, index)| {
        let exact = index.parse::<i32>().is_ok_and(|n| n >= 0 && n.to_string() == index);
        exact && topic_name::validate(topic).is_ok()
    })
}

impl<E: Env> Shared<E> {
    /// See `LogSet::create`.
    pub(crate) async fn create(self: &Rc<Self>, known: &KnownLog) -> Result<LogHandle> {
        let dir = self.config.data_dir.join(known.dir_name());
        self.signal.wait(|| (!self.state.borrow().leaving.contains(&dir)).then_some(())).await;
        if self.env.fs().read_dir(&dir).await.is_ok_and(|found| !found.is_empty()) {
            self.make_way_for(known, &dir).await?;
        }
        make_dir(self, &dir, known).await?;
        let mut epochs = EpochCache::default();
        let epoch = known.epoch_to_start.unwrap_or(LeaderEpoch(0));
        epochs.assign(epoch, Offset::ZERO);
        let active = OpenSegment::new(Offset::ZERO, known.config.index_interval_bytes);
        let handle = self
            .state
            .borrow_mut()
            .insert(|handle| Log { epochs, ..Log::at_rest(handle, known, dir, active) });
        let open = FrameHeader::bare(FrameKind::Open, known.log_id, epoch);
        self.queue_patiently(handle, open, &[known.dir_name().as_bytes()]).await?;
        self.kick_reserve();
        Ok(handle)
    }

    /// See `LogSet::delete`.
    pub(crate) async fn delete(self: &Rc<Self>, handle: LogHandle) -> Result<()> {
        if let Some(log) = self.state.borrow_mut().log_mut(handle) {
            log.leaving = true;
        }
        self.signal.notify();
        // Whoever writes by path would write into a successor's directory.
        self.claim_quiet(handle).await?;
        let log = {
            let mut state = self.state.borrow_mut();
            let log = state.log(handle).map(|_| handle.slot as usize).ok_or(Error::Gone)?;
            state.bypassing.retain(|h| *h != handle);
            let log = state.logs.remove(log);
            state.bypass_bytes -= log.bypass_waits + log.bypass_flight.map_or(0, |f| f.bytes);
            state.leaving.push(log.dir.clone());
            log
        };
        self.files.forget(handle, |_| false);
        self.wake();
        let mut aside = self.put_aside(&log.dir, log.known.log_id.0).await;
        if let Err(error @ Error::NoSpace { .. }) = &aside
            && self.give_up_reserve(error).await
        {
            // Even a longer name may need a block.
            aside = self.put_aside(&log.dir, log.known.log_id.0).await;
        }
        self.state.borrow_mut().leaving.retain(|dir| *dir != log.dir);
        self.signal.notify();
        aside
    }

    /// Takes away what lies under the name of a new log: what an earlier try to
    /// create it left is deleted, what nobody knows is kept under another name.
    async fn make_way_for(self: &Rc<Self>, known: &KnownLog, dir: &Path) -> Result<()> {
        let id = known.log_id.0 ^ self.env.random();
        let about = self.env.fs().read(&dir.join("partition.metadata")).await;
        if about.is_ok_and(|text| text == metadata_text(known.topic_id).as_bytes()) {
            return self.put_aside(dir, id).await;
        }
        let kept = self.rename_aside(dir, id, STRAY).await?;
        self.sync_dir(&self.config.data_dir).await?;
        tracing::warn!(
            "{} belonged to no partition and was in the way of a new one: it is kept as {}",
            dir.display(),
            kept.display()
        );
        Ok(())
    }

    /// Renames a directory out of the way, durably, and has it unlinked.
    async fn put_aside(self: &Rc<Self>, dir: &Path, id: u64) -> Result<()> {
        let aside = self.rename_aside(dir, id, DELETED).await?;
        self.sync_dir(&self.config.data_dir).await?;
        self.unlink_later(aside);
        Ok(())
    }

    async fn rename_aside(&self, dir: &Path, id: u64, end: &str) -> Result<PathBuf> {
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let aside = self.config.data_dir.join(format!("{name}.{id:016x}{end}"));
        let renamed = self.env.fs().rename(dir, &aside).await;
        renamed.map_err(|e| Error::io(dir, e))?;
        Ok(aside)
    }

    /// See `LogSet::delete_removed`.
    pub(crate) async fn delete_removed(self: &Rc<Self>, removed: &[TopicId]) -> Result<()> {
        let removed: AHashSet<Vec<u8>> =
            removed.iter().map(|id| metadata_text(*id).into_bytes()).collect();
        let data_dir = self.config.data_dir.clone();
        let listed = self.env.fs().read_dir(&data_dir).await;
        let listed = listed.map_err(|e| Error::io(&data_dir, e))?;
        let known: AHashSet<PathBuf> =
            self.state.borrow().logs.iter().map(|(_, log)| log.dir.clone()).collect();
        let (mut aside, mut strangers) = (Vec::new(), Vec::new());
        for entry in listed.into_iter().filter(|e| e.is_dir && is_partition(&e.name)) {
            let dir = data_dir.join(&entry.name);
            if known.contains(&dir) {
                continue;
            }
            let about = self.env.fs().read(&dir.join("partition.metadata")).await;
            if about.is_ok_and(|text| removed.contains(&text)) {
                aside
                    .push((self.rename_aside(&dir, self.env.random(), DELETED).await?, entry.name));
            } else {
                strangers.push(entry.name);
            }
        }
        if !strangers.is_empty() {
            tracing::warn!(
                "{} belong to no partition that the metadata knows or has known: they are left \
                 alone. Move them elsewhere",
                strangers.join(", ")
            );
        }
        if aside.is_empty() {
            return Ok(());
        }
        self.sync_dir(&data_dir).await?;
        let names: Vec<_> = aside.iter().map(|(_, name)| name.as_str()).collect();
        tracing::info!("of removed topics, deleted now: {}", names.join(", "));
        aside.into_iter().for_each(|(dir, _)| self.unlink_later(dir));
        Ok(())
    }

    /// Finds directories whose deletion a crash interrupted.
    pub(crate) async fn resume_deletions(self: &Rc<Self>) -> Result<()> {
        let dir = &self.config.data_dir;
        let listed = self.env.fs().read_dir(dir).await.map_err(|e| Error::io(dir, e))?;
        for entry in listed.into_iter().filter(|e| e.is_dir && is_set_aside(&e.name)) {
            self.unlink_later(dir.join(entry.name));
        }
        Ok(())
    }

    fn unlink_later(self: &Rc<Self>, dir: PathBuf) {
        {
            let mut state = self.state.borrow_mut();
            state.unlinking.push_back(dir);
            if std::mem::replace(&mut state.unlinker_running, true) {
                return;
            }
        }
        let shared = self.clone();
        self.env.spawn(async move { shared.run_unlinker().await }).detach();
    }

    async fn run_unlinker(self: Rc<Self>) {
        loop {
            let next = {
                let mut state = self.state.borrow_mut();
                let next = state.unlinking.pop_front();
                state.unlinker_running = next.is_some();
                next
            };
            let Some(dir) = next else { return };
            if let Err(error) = self.unlink(&dir).await {
                // Only space is lost; the next start tries again.
                tracing::warn!(dir = %dir.display(), %error, "a deleted log stays on disk");
            }
        }
    }

    async fn unlink(&self, dir: &Path) -> std::io::Result<()> {
        for entry in self.env.fs().read_dir(dir).await? {
            self.env.fs().remove_file(&dir.join(entry.name)).await?;
            self.env.sleep(self.config.unlink_every).await;
        }
        self.env.fs().remove_dir(dir).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_ours_are_deleted() {
        for ours in ["a-0.00000000000000ff-delete", "x.y-12.0123456789abcdef-delete"] {
            assert!(is_set_aside(ours), "{ours}");
        }
        // The second is how Kafka names what it deletes.
        for other in [
            "a-delete",
            "a-0.9aa6b9e8b5b04d3e8a7c6d5e4f3a2b1c-delete",
            "a-0.00000000000000fg-delete",
            "a.00000000000000ff-delete",
        ] {
            assert!(!is_set_aside(other), "{other}");
        }
        assert!(is_partition("a-b-7") && is_partition("__cluster_metadata-0"));
        for other in ["a", "a-", "a-07", "a--1x", "a-+1", "-1", "a b-1", "journal", "."] {
            assert!(!is_partition(other), "{other}");
        }
    }
}
