//! What recovery has changed and not yet synced: a start that synced each
//! file by itself would wait for the disk a hundred times for twenty logs.
//!
//! Below a bound the files are synced together, above it the file system is.

use std::path::{Path, PathBuf};

use super::error::{Error, FatalReason, Result};
use super::state::Shared;
use super::together::all_well;
use crate::io::{Env, File, FileSystem as _};
use crate::model::planted::{Bug, armed};

/// Files and directories synced one by one; with more, one `syncfs` is cheaper.
const MAX: usize = 128;

/// Files and directories that wait for a sync.
pub(crate) struct Unsynced<F> {
    files: Vec<F>,
    dirs: Vec<PathBuf>,
    /// They were too many to be remembered.
    all: bool,
}

impl<F> Default for Unsynced<F> {
    fn default() -> Self {
        Self { files: Vec::new(), dirs: Vec::new(), all: false }
    }
}

impl<F> Unsynced<F> {
    fn bound(&mut self) {
        if self.files.len() + self.dirs.len() > MAX {
            *self = Self { all: true, ..Self::default() };
        }
    }
}

impl<E: Env> Shared<E> {
    /// Has a file synced by `sync_recovered`.
    pub(crate) fn sync_file_later(&self, file: super::state::FileOf<E>) {
        let unsynced = &mut self.state.borrow_mut().unsynced;
        if !unsynced.all {
            unsynced.files.push(file);
            unsynced.bound();
        }
    }

    /// Has a directory synced by `sync_recovered`.
    pub(crate) fn sync_dir_later(&self, dir: &Path) {
        let unsynced = &mut self.state.borrow_mut().unsynced;
        if !unsynced.all && unsynced.dirs.last().is_none_or(|last| last != dir) {
            unsynced.dirs.push(dir.to_path_buf());
            unsynced.bound();
        }
    }

    /// Makes everything that recovery has written durable.
    pub(crate) async fn sync_recovered(&self) -> Result<()> {
        let synced = self.sync_taken().await;
        // Another try must not forget what this one has not come to.
        self.state.borrow_mut().unsynced.all = synced.is_err();
        synced
    }

    async fn sync_taken(&self) -> Result<()> {
        let unsynced = std::mem::take(&mut self.state.borrow_mut().unsynced);
        if unsynced.all {
            let dir = &self.config.data_dir;
            let synced = self.env.fs().sync_fs(dir).await;
            return synced.map_err(|e| Error::fatal(FatalReason::Sync, dir, &e));
        }
        let files = unsynced.files.into_iter().map(|file| async move {
            let synced = file.sync_data().await;
            synced.map_err(|e| Error::fatal(FatalReason::Sync, file.path(), &e))
        });
        all_well(files.collect()).await?;
        if armed(Bug::NoDirectorySync) {
            return Ok(());
        }
        all_well(unsynced.dirs.iter().map(|dir| self.sync_dir(dir)).collect()).await
    }
}
