"""Tests of docker/ that need no Docker engine; a folder named docker would hide the package."""
