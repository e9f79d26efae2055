"""Tools that make what tocsin ships; they need the public data and are not part of the package."""
