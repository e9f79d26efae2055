"""Failure: will this job fail, by what, and what speaks for it; a detector that learns from how jobs ended."""
