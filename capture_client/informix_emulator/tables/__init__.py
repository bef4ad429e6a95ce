"""Databases and tables: their definitions, and rows as the log holds them."""
