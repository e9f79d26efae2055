"""Failure: will this job fail, of what cause and why; a detector that learns from how jobs ended."""
