//! Closed segments below the floor, at a start: only the producers want their
//! batches, so damage in one isolates a range and does not stop the start. Their
//! epochs are those of the checkpoint.
//!
//! What lies behind a damaged range is found by the offset index and counts;
//! what lies in it is unknown. Of a producer with batches there the state is
//! that of its newest batch outside, which never takes for new what it knows.

use super::error::{Error, Result};
use super::rescan::{Scan, has_producer};
use super::scan::Walk;
use super::segment::index::valid_offsets;
use super::segment::names::{self, Kind};
use super::segment::tail::Mark;
use super::state::FileOf;
use crate::io::{Env, FileSystem as _, OpenMode};
use crate::model::Offset;
use crate::record::BatchView;

/// Bytes read when a batch is looked for behind damage.
const PROBE_BYTES: u64 = 4096;

impl<E: Env> Scan<'_, E> {
    /// Walks the batches of a closed segment that are wanted, around damage.
    pub(crate) async fn read_closed(&mut self, base: Offset, end: Mark) -> Result<()> {
        let path = names::path(self.dir, base, Kind::Log);
        let start = Mark { offset: base, pos: 0 };
        let file = match self.shared.env.fs().open(&path, OpenMode::READ).await {
            Ok(file) => file,
            Err(source) => return self.damaged(Error::io(&path, source), start, end),
        };
        let (_, mut at) = self.resume_index(&file, base, end.pos).await?;
        loop {
            let pool = &self.shared.config.pools.cold;
            let mut walk = Walk::new(&self.shared.env, &file, pool, at, end.pos);
            let walked = self.take_batches(&mut walk).await;
            let from = walk.at;
            let error = match walked {
                Ok(()) if from.offset == end.offset => return Ok(()),
                Ok(()) => Error::Corrupt {
                    path: path.clone(),
                    position: from.pos,
                    offset: from.offset,
                    what: "the batches up to the next segment are missing",
                },
                Err(error) => error,
            };
            let next = self.next_batch(&file, base, from, end).await?;
            self.damaged(error, from, next)?;
            if next.pos >= end.pos {
                return Ok(());
            }
            at = next;
        }
    }

    /// Says which range is lost; an error that passes is not about the range.
    fn damaged(&self, error: Error, from: Mark, next: Mark) -> Result<()> {
        if error.passes() {
            return Err(error);
        }
        tracing::error!(
            "{error}: offsets {} to {} of {} cannot be read at position {}; their readers get an \
             error, everything else goes on. Restore the file from a copy while the broker is \
             stopped, or have consumers seek to {}",
            from.offset,
            next.offset.plus(-1),
            self.known.dir_name(),
            from.pos,
            next.offset
        );
        Ok(())
    }

    async fn take_batches(&mut self, walk: &mut Walk<'_, E, FileOf<E>>) -> Result<()> {
        while let Some((head, bytes)) = walk.peek().await? {
            if head.base >= self.wanted_from && has_producer(&bytes) {
                let whole = walk.batch(&head).await?;
                if !BatchView::parse(&whole).is_ok_and(|(batch, _)| batch.verify_crc()) {
                    return Err(walk.corrupt("another checksum"));
                }
                self.note(&head, &whole);
            }
            walk.skip(&head);
        }
        Ok(())
    }

    /// The first batch behind `from` that the offset index knows and that can
    /// be read, with growing steps, since each try on a dying disk takes long;
    /// `end` when there is none.
    async fn next_batch(
        &self,
        file: &FileOf<E>,
        base: Offset,
        from: Mark,
        end: Mark,
    ) -> Result<Mark> {
        let path = names::path(self.dir, base, Kind::Index);
        let Ok(index) = self.shared.env.fs().read(&path).await else { return Ok(end) };
        let entries = valid_offsets(&index, end.pos);
        let mut at = entries.partition_point(|entry| u64::from(entry.position) <= from.pos);
        let mut step = 1;
        while let Some(entry) = entries.get(at) {
            let mark = Mark { offset: base, pos: u64::from(entry.position) };
            let pool = &self.shared.config.pools.cold;
            let mut walk =
                Walk::new(&self.shared.env, file, pool, mark, end.pos).reading(PROBE_BYTES);
            match walk.header_only().await {
                Ok(Some(head))
                    if head.end().0 - 1 - base.0 == i64::from(entry.relative)
                        && head.base >= from.offset =>
                {
                    return Ok(Mark { offset: head.base, pos: mark.pos });
                }
                Err(error) if error.passes() => return Err(error),
                _ => {}
            }
            at += step;
            step *= 2;
        }
        Ok(end)
    }
}
