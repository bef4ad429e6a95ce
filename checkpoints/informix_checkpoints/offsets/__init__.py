"""Offsets as Spark keeps them, and the checkpoint that it keeps them in."""
