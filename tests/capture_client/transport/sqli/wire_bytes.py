"""Bytes as they arrive in tests: whole, or cut as a network may cut them."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable

from informix_capture_client.transport.sqli.incoming import Incoming

ReceiveInto = Callable[[memoryview], int]


def arriving(content: bytes) -> Incoming:
    """Return bytes that come as fast as they are taken."""
    return Incoming(io.BytesIO(content).readinto)


def arriving_in_pieces(content: bytes, sizes: Iterable[int]) -> Incoming:
    """Return bytes that come in pieces of at most these sizes, over and over."""
    source, turns = io.BytesIO(content), itertools.cycle(sizes)
    return Incoming(lambda target: source.readinto(target[: next(turns)]))
