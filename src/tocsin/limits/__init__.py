"""Compares requests with the machine, with earlier jobs and for contradictions: rules, without training."""
