"""Sinks: where messages from the outbox go."""
