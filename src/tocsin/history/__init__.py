"""What was known by T: over a whole log at once, and job by job for a service."""
