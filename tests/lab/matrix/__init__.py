"""The same stream on other Sparks and Pythons: `make matrix`."""
