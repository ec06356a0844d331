"""A full disk under load: a small ext4 on a loop device."""
