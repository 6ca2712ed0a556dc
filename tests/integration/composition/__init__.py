"""Packages that people stack on their clients, with ours beneath; each with the real one."""
