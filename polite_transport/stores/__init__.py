"""Floor 2: where turns and robots.txt copies live."""
