"""Joins detectors' parts into one Verdict per job, with policy, allow-list and cases. It does no I/O."""
