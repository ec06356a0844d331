//! The environment: files, directories, clock, chance and tasks behind traits,
//! so that everything from `log` upward runs on a real machine and in a
//! simulated one. Below: aligned memory that may cross shards.

pub mod chunk;
pub mod env;
pub mod glommio;
pub mod preflight;
pub mod ring;
pub mod sim;
pub(crate) mod syscall;

pub use chunk::{ChunkMut, ChunkSlice, Pool, TailChunk};
pub use env::{DirEntry, Env, File, FileSystem, OpenMode, Space, Task};
