//! Faults of a simulated disk: errors by plan (the n-th operation of a kind on
//! a path) or by rate, a capacity, and a limit of open files.

use std::io;

/// The operations that can be made to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultOp {
    /// Reads of an open file or of a whole small one.
    Read,
    /// Writes, inline ones included.
    Write,
    /// fdatasync, fsync, fsync of a directory, syncfs.
    Sync,
    /// Opens.
    Open,
    /// Allocations of blocks; a file keeps some of what was asked for.
    Allocate,
}

const OPS: usize = 5;

struct Planned {
    op: FaultOp,
    path_part: String,
    skip: u64,
    errno: i32,
}

struct Rate {
    op: FaultOp,
    path_part: String,
    per_mille: u32,
    errno: i32,
}

/// An error that was given out by plan or rate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hit {
    /// The operation.
    pub op: FaultOp,
    /// The file or directory.
    pub path: String,
    /// What it got.
    pub errno: i32,
}

/// What goes wrong on one node's disk.
#[derive(Default)]
pub struct Faults {
    planned: Vec<Planned>,
    rates: Vec<Rate>,
    pub(super) capacity: Option<u64>,
    pub(super) open_limit: Option<usize>,
    injected: [u64; OPS],
    hits: Vec<Hit>,
}

impl Faults {
    /// The operation `op` on a path that contains `path_part` fails once with
    /// `errno`, after `skip` such operations have passed.
    pub fn plan(&mut self, op: FaultOp, path_part: &str, skip: u64, errno: i32) {
        self.planned.push(Planned { op, path_part: path_part.to_owned(), skip, errno });
    }

    /// From now on `per_mille` of a thousand such operations fail with `errno`.
    pub fn rate(&mut self, op: FaultOp, path_part: &str, per_mille: u32, errno: i32) {
        self.rates.push(Rate { op, path_part: path_part.to_owned(), per_mille, errno });
    }

    /// The disk holds at most `bytes` in all files; extensions beyond get
    /// ENOSPC. `None` takes the limit away.
    pub fn set_capacity(&mut self, bytes: Option<u64>) {
        self.capacity = bytes;
    }

    /// At most `files` descriptors; further opens get EMFILE.
    pub fn set_open_limit(&mut self, files: Option<usize>) {
        self.open_limit = files;
    }

    /// The errors given out by plan or rate since the last `clear`.
    #[must_use]
    pub fn hits(&self) -> &[Hit] {
        &self.hits
    }

    /// Nothing goes wrong any more.
    pub fn clear(&mut self) {
        let injected = self.injected;
        *self = Self { injected, ..Self::default() };
    }

    /// Errors given out so far by plan or rate.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.injected.iter().sum()
    }

    /// As `injected`, of one operation.
    #[must_use]
    pub fn injected_in(&self, op: FaultOp) -> u64 {
        self.injected[op as usize]
    }

    pub(super) fn check(
        &mut self,
        op: FaultOp,
        path: &str,
        rng: &mut super::Rng,
    ) -> io::Result<()> {
        let mut hit = None;
        for (i, plan) in self.planned.iter_mut().enumerate() {
            if plan.op == op && path.contains(&plan.path_part) {
                if plan.skip == 0 {
                    hit = Some(i);
                    break;
                }
                plan.skip -= 1;
            }
        }
        let errno = match hit {
            Some(i) => Some(self.planned.remove(i).errno),
            None => self
                .rates
                .iter()
                .find(|r| r.op == op && path.contains(&r.path_part) && rng.chance(r.per_mille))
                .map(|r| r.errno),
        };
        match errno {
            Some(errno) => {
                self.injected[op as usize] += 1;
                self.hits.push(Hit { op, path: path.to_owned(), errno });
                Err(io::Error::from_raw_os_error(errno))
            }
            None => Ok(()),
        }
    }
}
