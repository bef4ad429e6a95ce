"""What a stream remembers: captured rows until Spark has them, and where it stands.

Rule: no network and no Spark; of the client it knows positions, errors, failpoints and log events.
"""

__all__: list[str] = []
