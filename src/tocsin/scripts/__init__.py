"""Parses job scripts into scheduler, request and commands, and edits their directives; nothing is ever executed."""
