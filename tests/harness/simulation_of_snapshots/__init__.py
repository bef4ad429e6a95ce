"""Snapshots in the simulation: the whole product, with writers between any two steps of a chunk."""
