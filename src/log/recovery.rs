//! Start: reads all journals, works out each known log's state, writes its
//! tail to its segments, then starts fresh journals.
//!
//! Trusts segment bytes below a floor and bytes that a frame vouches for,
//! nothing else: scanning never extends a log.

use std::path::PathBuf;
use std::rc::Rc;

use ahash::AHashMap;

use super::checkpoint::{self, Groups, LogEntry};
use super::complete::REMEDY;
use super::config::{BLOCK, DurabilityClass, KnownLog, LogSetConfig};
use super::error::{Error, FatalReason, Result};
use super::files_lru::FilesLru;
use super::journal::files::{FileHeader, is_journal};
use super::journal::frame::{FrameHeader, FrameKind};
use super::journal::reader::{self, Chain, Replay, Stop};
use super::segment_io::READ_BYTES;
use super::set::{LogSet, Recovered};
use super::state::{FileOf, Shared, State};
use crate::io::{Env, File as _, FileSystem as _, OpenMode};
use crate::model::planted::{Bug, armed};
use crate::model::{LogId, Offset};

/// A journal file that this process found.
pub(crate) struct FoundFile<F> {
    pub(crate) file: F,
    pub(crate) path: PathBuf,
    pub(crate) header: Option<FileHeader>,
    first_number: Option<u64>,
    pub(crate) len: u64,
}

/// A journal: its class, and the shard that wrote it.
pub(crate) type JournalKey = (DurabilityClass, u16);

/// A start in progress: journals are scanned, logs are recovered one by one
/// (the metadata log first, whose content says which others there are), then
/// `finish` makes the set writable.
pub struct Recovery<E: Env> {
    pub(crate) set: LogSet<E>,
    pub(crate) files: Vec<FoundFile<FileOf<E>>>,
    pub(crate) entries: AHashMap<LogId, LogEntry>,
    replays: AHashMap<LogId, Replay>,
    pub(crate) chains: AHashMap<JournalKey, Chain>,
    /// Where each chain ended: file and byte.
    pub(crate) ends: AHashMap<JournalKey, (usize, u64)>,
    /// What the checkpoints say that each journal held.
    pub(crate) groups: AHashMap<JournalKey, Groups>,
    pub(crate) old_checkpoints: Vec<String>,
    /// For the planted bug only: who else had a log's name.
    names: AHashMap<String, LogId>,
    aliases: AHashMap<LogId, LogId>,
}

impl<E: Env> Recovery<E> {
    /// Reads every journal and checkpoint of the data directory.
    pub async fn scan(env: E, config: LogSetConfig) -> Result<Self> {
        let dir = config.journal_dir();
        let made = env.fs().create_dir_all(&dir).await;
        made.map_err(|e| Error::io(&dir, e))?;
        let parent = env.fs().sync_dir(&config.data_dir).await;
        parent.map_err(|e| Error::fatal(FatalReason::Sync, &config.data_dir, &e))?;
        let checkpoints = checkpoint::load_all(&env, &dir).await?;
        let shared = Rc::new(Shared {
            state: std::cell::RefCell::new(State::new(&config)),
            signal: Default::default(),
            files: FilesLru::new(config.open_files),
            notifier: Default::default(),
            flushing: Default::default(),
            env,
            config,
        });
        let mut recovery = Self {
            set: LogSet { shared },
            files: Vec::new(),
            entries: AHashMap::new(),
            replays: AHashMap::new(),
            chains: AHashMap::new(),
            ends: AHashMap::new(),
            groups: AHashMap::new(),
            old_checkpoints: Vec::new(),
            names: AHashMap::new(),
            aliases: AHashMap::new(),
        };
        recovery.shared().find_reserve().await?;
        recovery.take_checkpoints(checkpoints);
        recovery.find_files().await?;
        recovery.replay_all().await?;
        recovery.check_complete().await?;
        recovery.sync_journals().await?;
        Ok(recovery)
    }

    /// Makes durable what is believed, before segments follow it: what a killed
    /// process has left unsynced must not go away when they have.
    async fn sync_journals(&self) -> Result<()> {
        let shared = self.shared();
        shared.sync_dir(&shared.config.journal_dir()).await?;
        for found in &self.files {
            let synced = found.file.sync_data().await;
            synced.map_err(|e| Error::fatal(FatalReason::Sync, &found.path, &e))?;
        }
        Ok(())
    }

    pub(crate) fn shared(&self) -> &Rc<Shared<E>> {
        &self.set.shared
    }

    fn take_checkpoints(&mut self, mut found: Vec<(String, checkpoint::Checkpoint)>) {
        // A log that moved between shards is in both; the newer one counts.
        found.sort_by_key(|(_, c)| c.sequence);
        let shard_of =
            |name: &str| name.strip_prefix("checkpoint-").and_then(|s| s.parse::<u16>().ok());
        let own = Some(self.set.shared.config.shard.0);
        let own_sequence = found.iter().find(|(name, _)| shard_of(name) == own);
        let own_sequence = own_sequence.map_or(0, |(_, c)| c.sequence);
        for (name, checkpoint) in found {
            let shard = shard_of(&name);
            for class in DurabilityClass::ALL {
                let Some(shard) = shard else { continue };
                let mut groups = checkpoint.groups[class.index()];
                if checkpoint.sequence < own_sequence {
                    // A start has taken these over and may have deleted them.
                    groups = Groups { first: groups.first, ..Groups::default() };
                }
                self.groups.insert((class, shard), groups);
            }
            let mut state = self.set.shared.state.borrow_mut();
            state.checkpoint_sequence = state.checkpoint_sequence.max(checkpoint.sequence);
            for entry in checkpoint.logs {
                if armed(Bug::FrameMatchedByTopicName) {
                    self.names.entry(entry.name.clone()).or_insert(LogId(entry.log_id));
                }
                self.entries.insert(LogId(entry.log_id), entry);
            }
            if shard != own {
                self.old_checkpoints.push(name);
            }
        }
    }

    async fn find_files(&mut self) -> Result<()> {
        let shared = self.shared().clone();
        let dir = shared.config.journal_dir();
        let fs = shared.env.fs();
        let listed = fs.read_dir(&dir).await.map_err(|e| Error::io(&dir, e))?;
        for entry in listed.into_iter().filter(|e| is_journal(&e.name)) {
            let path = dir.join(&entry.name);
            let slot = entry.name.trim_end_matches(".journal").rsplit('-').next();
            let slot = slot.and_then(|s| s.parse::<u64>().ok()).unwrap_or(0);
            let class =
                if entry.name.starts_with("os") { OpenMode::READ_BUFFERED } else { OpenMode::READ };
            let file = fs.open(&path, class).await.map_err(|e| Error::io(&path, e))?;
            let mut found =
                FoundFile { file, path, header: None, first_number: None, len: entry.len };
            let mut start = Vec::new();
            load(&shared, &found, &mut start, 2 * BLOCK).await?;
            found.header = FileHeader::decode(&start);
            if let Some(header) = found.header {
                found.first_number = reader::number_at(&start, BLOCK as usize, header.identity);
                let mut state = shared.state.borrow_mut();
                for journal in &mut state.journals {
                    journal.next_sequence = journal.next_sequence.max(header.identity.sequence + 1);
                }
            }
            for journal in &mut shared.state.borrow_mut().journals {
                journal.next_slot = journal.next_slot.max(slot + 1);
            }
            self.files.push(found);
        }
        // Files are used in the order of their groups; those without a first
        // group are looked at last, for what they may still say.
        self.files.sort_by_key(|f| {
            let header = f.header.map(|h| (h.class, h.shard, h.identity.sequence));
            (header.map(|h| (h.0, h.1)), f.first_number.unwrap_or(u64::MAX), header.map(|h| h.2))
        });
        Ok(())
    }

    async fn replay_all(&mut self) -> Result<()> {
        let shared = self.shared().clone();
        let mut broken: AHashMap<JournalKey, u64> = AHashMap::new();
        for index in 0..self.files.len() {
            let Some(header) = self.files[index].header else { continue };
            let key = (header.class, header.shard);
            let chain = *self.chains.entry(key).or_default();
            let first_group = self.groups.get(&key).map_or(0, |g| g.first);
            let first = self.files[index].first_number;
            if first.is_some_and(|n| n < first_group) {
                // Older than a finished recovery or reclaim: its name survived
                // the deletion, its groups are void.
                continue;
            }
            let first_is_lost =
                chain.last.is_none() && first_group > 0 && first.is_some_and(|n| n > first_group);
            let mut bytes = Vec::new();
            let mut pos = BLOCK as usize;
            let mut after = chain;
            let mut frames: Vec<(FrameHeader, u64, Option<String>)> = Vec::new();
            let want_names = armed(Bug::FrameMatchedByTopicName);
            // A loop that ends by what it reads, unless there is nothing to read.
            let mut reading = !first_is_lost;
            while reading {
                let target = bytes.len() as u64 + READ_BYTES;
                load(&shared, &self.files[index], &mut bytes, target).await?;
                let complete = bytes.len() as u64 >= self.files[index].len;
                let stop = reader::scan(
                    &bytes,
                    complete,
                    header.identity,
                    &mut pos,
                    &mut after,
                    |_, frame, at| {
                        let named = want_names && frame.header.kind == FrameKind::Open;
                        let name =
                            named.then(|| String::from_utf8_lossy(frame.payload).into_owned());
                        frames.push((frame.header, at, name));
                    },
                );
                reading = stop != Stop::Bad && !complete;
            }
            if after != chain {
                broken.remove(&key);
                self.ends.insert(key, (index, pos as u64));
            }
            self.chains.insert(key, after);
            for (frame, at, name) in frames {
                self.apply(&frame, index, at, name)?;
            }
            let bad = after.last.map_or(first_group.max(1), |(n, _)| n + 1);
            let length = self.files[index].len;
            load(&shared, &self.files[index], &mut bytes, length).await?;
            if let Some(far) = reader::beyond_flight(&bytes, header.identity, pos, bad) {
                broken.entry(key).or_insert(far);
            }
            if shared.env.slice_over() {
                shared.env.pause().await;
            }
        }
        for ((class, shard), far) in broken {
            let suspects = self.suspects((class, shard));
            let name = class.name();
            let detail = format!(
                "{suspects}: group {far} of journal {name}-{shard} is valid beyond a bad one: {REMEDY}"
            );
            // Without power a page-cache journal may keep any of its pages.
            if class == DurabilityClass::Os {
                tracing::warn!(detail, "journal of class os has a hole; what follows it is lost");
                continue;
            }
            return Err(Error::Fatal { reason: FatalReason::JournalDamaged, detail });
        }
        Ok(())
    }

    fn apply(
        &mut self,
        frame: &FrameHeader,
        file: usize,
        at: u64,
        name: Option<String>,
    ) -> Result<()> {
        if matches!(frame.kind, FrameKind::State | FrameKind::Entry) {
            return Err(Error::Fatal {
                reason: FatalReason::JournalDamaged,
                detail: format!("frame {:?} needs a newer version", frame.kind),
            });
        }
        let mut id = frame.log_id;
        if let Some(name) = name {
            let first = *self.names.entry(name).or_insert(id);
            self.aliases.insert(id, first);
        }
        if armed(Bug::FrameMatchedByTopicName) {
            id = self.aliases.get(&id).copied().unwrap_or(id);
        }
        let entries = &self.entries;
        let replay = self.replays.entry(id).or_insert_with(|| {
            Replay::new(entries.get(&id).map_or(checkpoint::Floor::start_of(0), |e| e.floor))
        });
        replay.apply(frame, file, at);
        Ok(())
    }

    /// Recovers one log: applies its frames, writes its tail to its segments,
    /// rebuilds what is beyond its floor. It can be read from now on. A full
    /// disk is waited out, since what was acknowledged is in the journal only.
    pub async fn recover_log(&mut self, known: &KnownLog) -> Result<Recovered> {
        let mut id = known.log_id;
        if armed(Bug::FrameMatchedByTopicName) {
            id = self.names.get(&known.dir_name()).copied().unwrap_or(id);
        }
        let entry = self.entries.get(&id).cloned();
        let replay = self.replays.remove(&id).unwrap_or_else(|| {
            Replay::new(entry.as_ref().map_or(checkpoint::Floor::start_of(0), |e| e.floor))
        });
        loop {
            let built = super::rebuild::rebuild(self, known, entry.clone(), replay.clone()).await;
            let Err(error @ Error::NoSpace { .. }) = built else { return built };
            let name = known.dir_name();
            tracing::error!("{error}: the start of {name} waits until there is space");
            self.set.shared.wait_for_space(&error).await;
        }
    }

    /// The set, for reads of logs already recovered.
    pub fn set(&self) -> &LogSet<E> {
        &self.set
    }
}

impl<E: Env> Shared<E> {
    /// Queues a frame, waiting for journal memory.
    pub(crate) async fn queue_patiently(
        self: &Rc<Self>,
        handle: super::LogHandle,
        frame: FrameHeader,
        payload: &[&[u8]],
    ) -> Result<()> {
        while self.queue_frame(handle, frame, payload).is_err() {
            self.check()?;
            let class = match self.state.borrow().log(handle) {
                Some(log) => log.class(),
                None => return Err(Error::Gone),
            };
            self.submit(class);
            self.env.sleep(std::time::Duration::from_millis(1)).await;
        }
        Ok(())
    }
}

impl super::state::Log {
    /// The frame that says: the log ends here, and its latest epoch holds.
    pub(crate) fn reset_frame(&self) -> FrameHeader {
        let segment = self.active();
        let epoch = self.epochs.latest().map_or(crate::model::LeaderEpoch::NONE, |e| e.epoch);
        FrameHeader {
            base_offset: segment.end_offset,
            end_offset: segment.end_offset,
            segment: segment.base,
            position: segment.end_pos,
            ..FrameHeader::bare(FrameKind::Reset, self.known.log_id, epoch)
        }
    }
}

/// Loads a journal file's bytes up to `target`.
pub(crate) async fn load<E: Env>(
    shared: &Rc<Shared<E>>,
    found: &FoundFile<FileOf<E>>,
    bytes: &mut Vec<u8>,
    target: u64,
) -> Result<()> {
    let target = target.min(found.len);
    while (bytes.len() as u64) < target {
        let pos = bytes.len() as u64;
        let len = (target - pos).min(READ_BYTES).next_multiple_of(BLOCK) as usize;
        let pool = &shared.config.pools.cold;
        let buf = pool
            .take(len)
            .or_else(|| pool.take(BLOCK as usize))
            .ok_or(Error::NoMemory(pool.name()))?;
        let (result, mut buf) = found.file.read_at(buf, pos).await;
        let n = result.map_err(|e| Error::fatal(FatalReason::JournalRead, &found.path, &e))?;
        buf.set_len(n);
        bytes.extend_from_slice(&buf);
        if n == 0 {
            // Shorter than the directory said; what is missing reads as zeros.
            bytes.resize(target as usize, 0);
        }
    }
    Ok(())
}

/// Reads bytes of a journal file, for a payload that replay found.
pub(crate) async fn read_journal<E: Env>(
    shared: &Rc<Shared<E>>,
    found: &FoundFile<FileOf<E>>,
    at: u64,
    len: u64,
) -> Result<crate::io::ChunkSlice> {
    let pool = &shared.config.pools.cold;
    let start = at & !(BLOCK - 1);
    let want = ((at + len).next_multiple_of(BLOCK) - start) as usize;
    let buf = pool.take(want).ok_or(Error::NoMemory(pool.name()))?;
    let (result, mut buf) = found.file.read_at(buf, start).await;
    let n = result.map_err(|e| Error::fatal(FatalReason::JournalRead, &found.path, &e))?;
    let need = (at + len - start) as usize;
    if n < need {
        let detail = format!("{}: {n} of {need} bytes at {start}", found.path.display());
        return Err(Error::Fatal { reason: FatalReason::JournalRead, detail });
    }
    buf.set_len(need);
    Ok(buf.freeze().slice((at - start) as usize..need))
}

/// Where a log starts, as the checkpoint says; at 0 when none names it.
pub(crate) fn entry_start(entry: Option<&LogEntry>) -> Offset {
    Offset(entry.map_or(0, |e| e.log_start))
}
