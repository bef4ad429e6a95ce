"""What the stream remembers: positions, spool and manifest. No network, no Spark."""
