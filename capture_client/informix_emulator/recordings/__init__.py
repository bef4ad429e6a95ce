"""Recordings of a server: read from a file, and replayed."""
