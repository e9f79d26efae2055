"""Lessons: what the shipped weights are taught, from public and made-up scripts."""
