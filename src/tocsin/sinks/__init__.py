"""Sinks: destinations of the messages in the outbox."""
