"""The logical log: the transactions that write it, and the capture sessions that read it."""
