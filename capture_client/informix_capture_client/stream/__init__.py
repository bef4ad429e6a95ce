"""Session, records and transactions joined: bytes of a server in, events out."""
