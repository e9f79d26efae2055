"""What the shipped failure models learn from, and how."""
