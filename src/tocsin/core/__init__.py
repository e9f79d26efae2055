"""Definitions that all packages share: fields, Job, Verdict, stages, units, settings, errors, ports."""
