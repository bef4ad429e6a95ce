"""The system tables that clients query, with their columns."""
