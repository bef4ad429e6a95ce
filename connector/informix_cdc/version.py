"""The version of this package: a literal, so that nothing needs an install to read it."""

__version__ = "0.1.0"
