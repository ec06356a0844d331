"""Helpers shared by the scripts under tests/: installing judges, starting brokers, checking what comes back."""
