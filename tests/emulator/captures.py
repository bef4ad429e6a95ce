"""Captures of the emulator, and what is written into its log."""

from __future__ import annotations

from collections.abc import Callable

from emulator.conftest import ORDERS
from emulator.raw_client import RawClient, Record
from informix_emulator import EmulatedServer

Connect = Callable[..., RawClient]


def names(records: list[Record]) -> list[str]:
    return [record.name for record in records]


def capturing(
    connect: Connect,
    server: EmulatedServer,
    position: int = 0,
    columns: str = "id,name,qty",
    timeout: int = 0,
    max_recs: int = 256,
) -> RawClient:
    client = connect(server)
    client.open(timeout, max_recs)
    client.capture(ORDERS, columns)
    client.activate(position)
    return client


def fill(server: EmulatedServer, count: int = 5) -> None:
    with server.transaction(user_id=1001) as tx:
        for number in range(1, count + 1):
            tx.insert(ORDERS, {"id": number, "name": "x" * (number % 20), "qty": None})
