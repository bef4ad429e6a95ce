"""A world without Spark in which everything is decided by a seed."""
