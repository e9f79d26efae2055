"""Follow a cluster round by round and give each verdict exactly once."""
