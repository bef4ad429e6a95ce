"""The system tables that clients ask, with their columns."""
