"""The folder that ``polite run`` puts in front of PYTHONPATH."""
