"""Power cuts: ext4 on a loop device over a FUSE file that forgets what was not synced (cutfs.rs)."""
