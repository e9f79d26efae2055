"""The tests of tocsin."""
