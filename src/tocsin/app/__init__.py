"""What all commands share: an App opened from the settings, and one function for each use case."""
