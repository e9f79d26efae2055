"""Execution: what an ended job was, by what it did."""
