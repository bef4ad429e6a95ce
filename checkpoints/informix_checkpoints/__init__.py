"""The durable state of a stream: captured rows until Spark has read them, and its offsets.

Rule: no network and no Spark; uses only positions, errors, failpoints and log events of the client.
"""

__all__: list[str] = []
