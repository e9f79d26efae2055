"""Follow a cluster: its queue round by round, the stage clock, and each verdict exactly once."""
