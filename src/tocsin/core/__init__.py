"""Definitions that all rooms share: fields, Job, Verdict, stages, units, settings, errors, ports."""
