"""Whether full row logging was switched is what the table's flag says, and not the server's answer."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from informix_capture_client.catalog import Table
from informix_capture_client.dialects import INFORMIX
from informix_capture_client.errors import ServerRefused
from informix_capture_client.sql_names import TableName
from informix_cdc.commands.row_logging import switch_off, switch_on

TABLE = Table(TableName("shop", "informix", "orders"), 100, 1, "01/01/2026", ())
CONTENT = SimpleNamespace(call=lambda *_: 0)  # a connection whose server refuses nothing


def catalog(*, is_on: bool) -> Any:
    return SimpleNamespace(logs_full_rows=lambda _table: is_on)


@pytest.mark.parametrize(
    ("switch", "flag", "told"),
    [
        (switch_on, False, "is on, but its flag is not set"),
        (switch_off, True, "is off, but its flag is"),
    ],
)
def test_a_flag_that_stays_as_it_was_is_refused(
    switch: Callable[..., None], flag: bool, told: str
) -> None:
    with pytest.raises(ServerRefused, match=told):
        switch(CONTENT, catalog(is_on=flag), TABLE, INFORMIX)


@pytest.mark.parametrize(("switch", "flag"), [(switch_on, True), (switch_off, False)])
def test_a_flag_that_follows_is_taken(switch: Callable[..., None], flag: bool) -> None:
    switch(CONTENT, catalog(is_on=flag), TABLE, INFORMIX)
