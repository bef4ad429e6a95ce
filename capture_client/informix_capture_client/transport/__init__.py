"""Connections to a server: ODBC, the emulator's socket, and a recorder around either."""
