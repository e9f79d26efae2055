"""Classifies ended jobs by their execution: what their counters show."""
