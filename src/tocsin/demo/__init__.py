"""A small believable cluster, seeded, behind the same ports as a real one; never for an accuracy claim."""
