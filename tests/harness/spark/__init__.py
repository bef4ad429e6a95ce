"""Sparks of the tests: how they start, stream, die and are read."""
