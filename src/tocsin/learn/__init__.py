"""Learns from outcomes: trains models into the registry, and back-tests them by walking forward in time."""
