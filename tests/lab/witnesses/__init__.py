"""Clients that others wrote, as judges of the emulator: `make witnesses`, docs/witnesses.md."""
