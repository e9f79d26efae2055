"""The one thing that every face shares: an App opened from the settings, and one function for each use."""
