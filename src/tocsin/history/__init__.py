"""What was known at an instant: for a whole log at once, and job by job for a service."""
