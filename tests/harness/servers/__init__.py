"""Servers that tests put the product to."""
