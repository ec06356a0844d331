//! Rot: bits of closed segments and their indexes that flip, sectors that
//! cannot be read any more. What a reader may be told instead of the records,
//! and where.

use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use millstream::io::sim::Sim;
use millstream::log::{Error, ReadOutcome};
use millstream::model::{LogId, Offset};

use crate::driver::Shard;
use crate::files::Files;
use crate::history::NODE;
use crate::model::{Batch, Chain};
use crate::plan::data_dir;

const BLOCK: u64 = 4096;

/// Damage to one segment; no segment gets more than one.
#[derive(Clone, Debug)]
pub(crate) struct Damage {
    segment: PathBuf,
    /// File, position and bit that flipped.
    flip: Option<(PathBuf, u64, u8)>,
    /// The batches that are no longer what they were, by position and offset.
    hurt: Vec<(u64, i64)>,
    /// End of the last of them.
    hurt_end: i64,
    /// From the first of them to the next index entry, which names the last
    /// offset of its batch: there a reader may be told of damage.
    isolated: Range<i64>,
}

impl Damage {
    pub(crate) fn covers(&self, offset: i64) -> bool {
        self.isolated.contains(&offset)
    }

    /// Whether a walk from `from` to `to` meets it.
    pub(crate) fn lies_within(&self, from: i64, to: i64) -> bool {
        self.isolated.start < to && from < self.hurt_end
    }

    /// Whether an error names the file and a batch that is really damaged.
    pub(crate) fn is_named_by(&self, error: &Error) -> bool {
        match error {
            Error::Corrupt { path, position, offset, .. }
            | Error::Unreadable { path, position, offset, .. } => {
                *path == self.segment && self.hurt.contains(&(*position, offset.0))
            }
            _ => false,
        }
    }

    /// Takes a flipped bit back in a copy of the files.
    pub(crate) fn undo(&self, files: &mut Files) {
        if let Some((path, pos, bit)) = &self.flip
            && let Some(byte) = files.get_mut(path).and_then(|f| f.get_mut(*pos as usize))
        {
            *byte ^= 1 << bit;
        }
    }
}

/// A batch and its position in its segment.
type Placed = (u64, Rc<Batch>);

/// Damages some of the segments that were closed when this incarnation began,
/// and reads around each damage.
pub(crate) async fn inflict(shard: &Rc<Shard>, sim: &Sim) {
    let files: Files = sim.files(NODE).into_iter().collect();
    let logs: Vec<(LogId, String, Chain)> = {
        let model = shard.shared.model.borrow();
        model.logs.values().map(|l| (l.known.log_id, l.known.dir_name(), l.live.clone())).collect()
    };
    for (id, name, chain) in logs {
        let dir = data_dir().join(name);
        let mut segments: Vec<&PathBuf> = files
            .keys()
            .filter(|p| p.parent() == Some(&dir) && p.extension().is_some_and(|e| e == "log"))
            .collect();
        segments.pop();
        for segment in segments {
            let taken = {
                let model = shard.shared.model.borrow();
                model.logs.get(&id).is_none_or(|l| l.damages.iter().any(|d| d.segment == *segment))
            };
            if taken || !shard.shared.chance(300) {
                continue;
            }
            let batches = placed(&chain, segment, files[segment].len() as u64);
            let damage = damage(shard, sim, &files, segment, &batches);
            shard.shared.tell(|| format!("damage to log {id}: {damage:?}"));
            shard.shared.model.borrow_mut().log(id).damages.push(damage);
            for (_, batch) in &batches {
                shard.read_one(id, batch).await;
            }
        }
    }
}

/// The batches of a segment with their positions.
fn placed(chain: &Chain, segment: &std::path::Path, len: u64) -> Vec<Placed> {
    let base: i64 = segment.file_stem().and_then(|s| s.to_str()?.parse().ok()).expect("an offset");
    let mut at = 0;
    let mut out = Vec::new();
    for batch in chain.iter().filter(|b| b.base >= base) {
        if at >= len {
            break;
        }
        out.push((at, batch.clone()));
        at += batch.bytes.len() as u64;
    }
    assert_eq!(at, len, "{}: closed, and not whole", segment.display());
    out
}

fn damage(
    shard: &Shard,
    sim: &Sim,
    files: &Files,
    segment: &PathBuf,
    batches: &[Placed],
) -> Damage {
    let shared = &shard.shared;
    let len = files[segment].len() as u64;
    let (base, end) = (batches[0].1.base, batches[batches.len() - 1].1.end);
    let kind = ["log", "log", "log", "index", "timeindex"][shared.index(5)];
    let path = segment.with_extension(kind);
    let size = files.get(&path).map_or(0, |f| f.len() as u64);
    let unharmed = Damage {
        segment: segment.clone(),
        flip: None,
        hurt: Vec::new(),
        hurt_end: base,
        isolated: base..base,
    };
    if size == 0 {
        return unharmed;
    }
    let pos = if shared.chance(500) {
        // Headers are a small part of the bytes, and the interesting one.
        let (at, _) = batches[shared.index(batches.len())];
        (at + shared.below(61)).min(size - 1)
    } else {
        shared.below(size)
    };
    let flips = shared.chance(600);
    let bit = shared.below(8) as u8;
    let range = if flips {
        sim.flip_bit(NODE, &path, pos, bit).expect("the file is there");
        pos..pos + 1
    } else {
        let from = pos / BLOCK * BLOCK;
        let range = from..from + BLOCK * (1 + shared.below(3));
        sim.spoil(NODE, &path, range.clone()).expect("the file is there");
        range
    };
    let mut events = shared.events.borrow_mut();
    if kind != "log" {
        events.rotten_indexes += 1;
        return Damage { flip: flips.then_some((path, pos, bit)), ..unharmed };
    }
    let hurt: Vec<&Placed> = batches
        .iter()
        .filter(|(at, b)| *at < range.end && range.start < at + b.bytes.len() as u64)
        .collect();
    let (last_at, last) = hurt[hurt.len() - 1];
    let index = files.get(&segment.with_extension("index")).map_or(&[][..], |f| &f[..]);
    let next = index
        .as_chunks::<8>()
        .0
        .iter()
        .map(|e| u64::from(u32::from_be_bytes([e[4], e[5], e[6], e[7]])))
        .find(|position| position > last_at && *position < len);
    let until = next.map_or(end, |position| {
        batches.iter().find(|(at, _)| *at == position).map_or(end, |(_, b)| b.end)
    });
    Damage {
        flip: flips.then_some((path, pos, bit)),
        hurt: hurt.iter().map(|(at, b)| (*at, b.base)).collect(),
        hurt_end: last.end,
        isolated: hurt[0].1.base..until,
        ..unharmed
    }
}

impl Shard {
    /// Whether `error` is what a reader at `offset` may be told because of rot,
    /// and counts it.
    pub(crate) fn rotten(&self, id: LogId, offset: i64, error: &Error) -> bool {
        let model = self.shared.model.borrow();
        let Some(log) = model.logs.get(&id) else { return false };
        let mut damages = log.damages.iter();
        let told = damages.any(|d| d.covers(offset) && d.is_named_by(error));
        let mut events = self.shared.events.borrow_mut();
        match error {
            Error::Corrupt { .. } => events.corrupt_batches_told += u64::from(told),
            _ => events.unreadable_batches_told += u64::from(told),
        }
        told
    }

    /// Reads one batch that is in a file, whatever its neighbours are like.
    async fn read_one(&self, id: LogId, batch: &Batch) {
        let (handle, start, upper) = {
            let parts = self.parts.borrow();
            let Some(part) = parts.get(&id) else { return };
            let offsets = part.machine.offsets();
            (part.handle, offsets.log_start.0, offsets.high_watermark.0)
        };
        let from = batch.base + self.shared.below((batch.end - batch.base) as u64) as i64;
        if from < start || batch.end > upper {
            return;
        }
        let max = [1, 20_000, 1 << 20][self.shared.index(3)];
        let cold = match self.set.read(handle, Offset(from), Offset(upper), max, true) {
            ReadOutcome::Cold(cold) => cold,
            other => panic!("log {id}: a closed segment at {from} gave {other:?}"),
        };
        let answer = self.set.read_cold(cold).await;
        match answer {
            Ok(slices) => {
                let bytes: Vec<u8> = slices.iter().flat_map(|s| s.iter().copied()).collect();
                assert!(
                    bytes.starts_with(&batch.bytes),
                    "log {id}: {from} is not what was written"
                );
            }
            Err(Error::Gone) => {}
            Err(error) => {
                assert!(self.rotten(id, from, &error), "log {id} at {from}: {error}");
            }
        }
    }
}
