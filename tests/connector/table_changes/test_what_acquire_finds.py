"""What `acquire` waits for and writes down, without a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.servers.stores import source_options
from informix_capture_client.errors import BadOption
from informix_cdc.commands import altering
from informix_cdc.commands.altering import require_receipt_of
from informix_cdc.options import SourceOptions
from informix_checkpoints.receipts import Receipt

NAME = "informix.orders"


def test_a_receipt_of_another_server_or_database_is_not_completed() -> None:
    options = SourceOptions.parse(source_options(9088, table=NAME))
    catalog = cast("Any", SimpleNamespace(server_name=lambda: "informix"))
    with pytest.raises(
        BadOption, match="the receipt is for source 5a5a, but this server and database are source"
    ):
        require_receipt_of(Receipt("5a5a", {"a": 7}, {NAME: "d"}, {NAME: 100}), catalog, options)


def waited(
    monkeypatch: pytest.MonkeyPatch, *open_then: set[int], seconds: float
) -> tuple[int, list[set[int]]]:
    """Wait for 1 and 2; return how often the server was asked who is open, and who was told of."""
    monkeypatch.setattr(altering, "POLL_SECONDS", 0)
    told: list[set[int]] = []
    now = iter(n * seconds for n in range(99))
    says = [*open_then, set[int]()]
    catalog = cast("Any", SimpleNamespace(open_transactions=lambda: frozenset(says.pop(0))))
    altering._await_ends(
        catalog, frozenset({1, 2}), lambda ids: told.append(set(ids)), lambda: next(now)
    )
    return len(open_then) + 1 - len(says), told


def test_whoever_is_waited_for_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    every = altering.REPORT_SECONDS / 2
    assert waited(monkeypatch, {1, 2}, {1, 2}, {2}, {2}, {2}, seconds=every) == (6, [{1, 2}, {2}])


def test_a_slot_that_was_free_once_is_not_waited_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, {1}, {2}, {1, 2}, seconds=0) == (2, [])
