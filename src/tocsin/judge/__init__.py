"""Detectors' parts → one Verdict per job, with policy, allow-list and cases. It reads and writes nothing."""
