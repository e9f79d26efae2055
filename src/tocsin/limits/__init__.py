"""Requests held against the machine, against their own past and against themselves: rules, no learning."""
