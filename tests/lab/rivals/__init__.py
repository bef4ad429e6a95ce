"""Debezium's Informix connector and ours: one emulated server, one log, one account of what is due."""
