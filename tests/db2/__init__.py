"""Formats of Db2 that other software writes: decoders, beside writers that share nothing with them."""
