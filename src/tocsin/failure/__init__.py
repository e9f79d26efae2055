"""Predicts whether a job will fail, from which cause and why; a detector that learns from how jobs ended."""
