"""kill -9 at random moments under idempotent producers."""
