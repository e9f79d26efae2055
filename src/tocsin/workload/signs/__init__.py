"""Signs of misuse: what no new name can hide."""
