"""Floor 4: how each HTTP client plugs in."""
