"""Traces: what running jobs and nodes do over time, and when that is no longer normal."""
