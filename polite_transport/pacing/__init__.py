"""Floor 1: when we may send."""
