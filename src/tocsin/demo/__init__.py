"""A small simulated cluster behind the same ports as a real one; never used for accuracy figures."""
