"""The audit log as people read it."""
