"""Kinds of jobs: found in a log, named in words, and described in tables."""
