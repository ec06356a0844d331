"""Unmodified clients and tools of others as judges of the broker."""
