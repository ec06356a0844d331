//! Names: directories, their changes, and the inodes behind them.
//!
//! A rename stays within its directory (anything else is EXDEV here), so that
//! each directory's changes are one ordered list and a rename is atomic.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::super::Rng;
use super::file::FileNode;
use super::{CrashReport, LostWrite, not_found};
use crate::io::chunk::PAGE;

/// Number of an inode.
pub(in super::super) type Ino = usize;

const ROOT: Ino = 0;

type Entries = BTreeMap<String, Ino>;

enum DirChange {
    Link { name: String, ino: Ino },
    Unlink { name: String },
    Rename { from: String, to: String },
}

impl DirChange {
    fn apply(&self, entries: &mut Entries) {
        match self {
            Self::Link { name, ino } => {
                entries.insert(name.clone(), *ino);
            }
            Self::Unlink { name } => {
                entries.remove(name);
            }
            Self::Rename { from, to } => {
                if let Some(ino) = entries.remove(from) {
                    entries.insert(to.clone(), ino);
                }
            }
        }
    }
}

#[derive(Default)]
struct DirNode {
    current: Entries,
    durable: Entries,
    pending: Vec<(u64, DirChange)>,
}

impl DirNode {
    fn change(&mut self, seq: u64, change: DirChange) {
        change.apply(&mut self.current);
        self.pending.push((seq, change));
    }

    fn sync(&mut self, upto: u64) {
        let covered = self.pending.iter().take_while(|(seq, _)| *seq <= upto).count();
        for (_, change) in self.pending.drain(..covered) {
            change.apply(&mut self.durable);
        }
    }
}

enum Node {
    File { file: FileNode, opens: isize },
    Dir(DirNode),
}

/// All inodes; number 0 is the root directory. Numbers are never reused, and
/// nothing is freed before a crash: an unlink may turn out to be lost.
pub(super) struct Tree {
    nodes: Vec<Node>,
}

impl Default for Tree {
    fn default() -> Self {
        Self { nodes: vec![Node::Dir(DirNode::default())] }
    }
}

fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

fn names(path: &Path) -> Vec<&str> {
    path.components()
        .filter_map(|c| match c {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect()
}

impl Tree {
    fn dir(&self, ino: Ino) -> io::Result<&DirNode> {
        match &self.nodes[ino] {
            Node::Dir(dir) => Ok(dir),
            Node::File { .. } => Err(errno(libc::ENOTDIR)),
        }
    }

    fn dir_mut(&mut self, ino: Ino) -> io::Result<&mut DirNode> {
        match &mut self.nodes[ino] {
            Node::Dir(dir) => Ok(dir),
            Node::File { .. } => Err(errno(libc::ENOTDIR)),
        }
    }

    pub(super) fn file(&self, ino: Ino) -> &FileNode {
        match &self.nodes[ino] {
            Node::File { file, .. } => file,
            Node::Dir(_) => panic!("inode {ino} is a directory"),
        }
    }

    pub(super) fn file_mut(&mut self, ino: Ino) -> &mut FileNode {
        match &mut self.nodes[ino] {
            Node::File { file, .. } => file,
            Node::Dir(_) => panic!("inode {ino} is a directory"),
        }
    }

    pub(super) fn is_dir(&self, ino: Ino) -> bool {
        matches!(self.nodes[ino], Node::Dir(_))
    }

    pub(super) fn lookup(&self, path: &Path) -> Option<Ino> {
        names(path).into_iter().try_fold(ROOT, |at, name| match &self.nodes[at] {
            Node::Dir(dir) => dir.current.get(name).copied(),
            Node::File { .. } => None,
        })
    }

    fn parent<'a>(&self, path: &'a Path) -> io::Result<(Ino, &'a str)> {
        let parent = path.parent().ok_or_else(|| errno(libc::EINVAL))?;
        let dir = self.lookup(parent).ok_or_else(|| not_found(parent))?;
        self.dir(dir)?;
        let name = path.file_name().and_then(|n| n.to_str()).ok_or_else(|| errno(libc::EINVAL))?;
        Ok((dir, name))
    }

    pub(super) fn create_file(&mut self, seq: u64, path: &Path) -> io::Result<Ino> {
        let (dir, name) = self.parent(path)?;
        let ino = self.nodes.len();
        let link = DirChange::Link { name: name.to_owned(), ino };
        self.nodes.push(Node::File { file: FileNode::default(), opens: 0 });
        self.dir_mut(dir)?.change(seq, link);
        Ok(ino)
    }

    pub(super) fn create_dir_all(&mut self, seq: u64, path: &Path) -> io::Result<()> {
        let mut at = ROOT;
        for name in names(path) {
            at = match self.dir(at)?.current.get(name) {
                Some(ino) => *ino,
                None => {
                    let ino = self.nodes.len();
                    self.nodes.push(Node::Dir(DirNode::default()));
                    let link = DirChange::Link { name: name.to_owned(), ino };
                    self.dir_mut(at)?.change(seq, link);
                    ino
                }
            };
        }
        self.dir(at).map(|_| ())
    }

    pub(super) fn read_dir(&self, path: &Path) -> io::Result<Vec<(String, bool, u64)>> {
        let ino = self.lookup(path).ok_or_else(|| not_found(path))?;
        let entries = &self.dir(ino)?.current;
        Ok(entries
            .iter()
            .map(|(name, ino)| match &self.nodes[*ino] {
                Node::Dir(_) => (name.clone(), true, 0),
                Node::File { file, .. } => (name.clone(), false, file.current.len),
            })
            .collect())
    }

    pub(super) fn rename(&mut self, seq: u64, from: &Path, to: &Path) -> io::Result<()> {
        let (dir, from_name) = self.parent(from)?;
        let (to_dir, to_name) = self.parent(to)?;
        if dir != to_dir {
            return Err(errno(libc::EXDEV));
        }
        let entries = &self.dir(dir)?.current;
        let ino = *entries.get(from_name).ok_or_else(|| not_found(from))?;
        if let Some(target) = entries.get(to_name) {
            match (&self.nodes[ino], &self.nodes[*target]) {
                (Node::File { .. }, Node::File { .. }) => {}
                (Node::Dir(_), Node::Dir(d)) if d.current.is_empty() => {}
                (Node::Dir(_), Node::Dir(_)) => return Err(errno(libc::ENOTEMPTY)),
                (Node::Dir(_), Node::File { .. }) => return Err(errno(libc::ENOTDIR)),
                (Node::File { .. }, Node::Dir(_)) => return Err(errno(libc::EISDIR)),
            }
        }
        if from_name != to_name {
            let change = DirChange::Rename { from: from_name.to_owned(), to: to_name.to_owned() };
            self.dir_mut(dir)?.change(seq, change);
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, seq: u64, path: &Path, want_dir: bool) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        let ino = *self.dir(dir)?.current.get(name).ok_or_else(|| not_found(path))?;
        match (&self.nodes[ino], want_dir) {
            (Node::Dir(d), true) if !d.current.is_empty() => return Err(errno(libc::ENOTEMPTY)),
            (Node::Dir(_), false) => return Err(errno(libc::EISDIR)),
            (Node::File { .. }, true) => return Err(errno(libc::ENOTDIR)),
            _ => {}
        }
        self.dir_mut(dir)?.change(seq, DirChange::Unlink { name: name.to_owned() });
        Ok(())
    }

    pub(super) fn opened(&mut self, ino: Ino, by: isize) {
        if let Node::File { opens, .. } = &mut self.nodes[ino] {
            *opens += by;
        }
    }

    pub(super) fn close_all(&mut self) {
        for node in &mut self.nodes {
            if let Node::File { opens, .. } = node {
                *opens = 0;
            }
        }
    }

    pub(super) fn used(&self) -> u64 {
        let mut counted = vec![false; self.nodes.len()];
        for (_, ino) in self.files() {
            counted[ino] = true;
        }
        self.nodes
            .iter()
            .zip(counted)
            .map(|(node, named)| match node {
                Node::File { file, opens } if named || *opens > 0 => {
                    file.current.len.next_multiple_of(PAGE as u64)
                }
                _ => 0,
            })
            .sum()
    }

    pub(super) fn sync_dir(&mut self, path: &Path, upto: u64) -> io::Result<()> {
        let ino = self.lookup(path).ok_or_else(|| not_found(path))?;
        self.dir_mut(ino)?.sync(upto);
        Ok(())
    }

    pub(super) fn sync_all(&mut self, upto: u64) {
        for node in &mut self.nodes {
            match node {
                Node::Dir(dir) => dir.sync(upto),
                Node::File { file, .. } => file.sync(upto),
            }
        }
    }

    /// All files that have a name now.
    pub(super) fn files(&self) -> Vec<(PathBuf, Ino)> {
        let mut found = Vec::new();
        let mut todo = vec![(PathBuf::from("/"), ROOT)];
        while let Some((path, ino)) = todo.pop() {
            match &self.nodes[ino] {
                Node::File { .. } => found.push((path, ino)),
                Node::Dir(dir) => {
                    todo.extend(dir.current.iter().map(|(name, ino)| (path.join(name), *ino)));
                }
            }
        }
        found.sort();
        found
    }

    /// Each directory keeps a prefix of its changes, each file what it may.
    pub(super) fn power_cut(&mut self, rng: &mut Rng, report: &mut CrashReport) {
        let mut names_before: BTreeMap<Ino, PathBuf> = BTreeMap::new();
        for (path, ino) in self.files() {
            names_before.insert(ino, path);
        }
        for (ino, node) in self.nodes.iter_mut().enumerate() {
            match node {
                Node::Dir(dir) => {
                    let kept = rng.index(dir.pending.len() + 1);
                    report.entries_lost += dir.pending.len() - kept;
                    for (_, change) in dir.pending.drain(..).take(kept) {
                        change.apply(&mut dir.durable);
                    }
                    dir.current = dir.durable.clone();
                }
                Node::File { file, .. } if file.is_clean() => {
                    file.power_cut(rng, |_, _, _| {});
                }
                Node::File { file, .. } => {
                    let path = names_before.get(&ino).cloned().unwrap_or_default();
                    file.power_cut(rng, |pos, len, fate| {
                        let path = path.clone();
                        let (in_flight, data) = (false, Vec::new());
                        report.writes.push(LostWrite { path, pos, len, fate, in_flight, data });
                    });
                }
            }
        }
        self.free_unreachable();
    }

    fn free_unreachable(&mut self) {
        let mut reached = vec![false; self.nodes.len()];
        let mut todo = vec![ROOT];
        while let Some(ino) = todo.pop() {
            reached[ino] = true;
            if let Node::Dir(dir) = &self.nodes[ino] {
                todo.extend(dir.current.values());
            }
        }
        for (node, reached) in self.nodes.iter_mut().zip(reached) {
            if !reached {
                *node = Node::File { file: FileNode::default(), opens: 0 };
            }
        }
    }
}
