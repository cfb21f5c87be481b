"""Published sets by name: downloaded, checked, read."""
