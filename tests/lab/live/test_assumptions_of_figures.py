"""What docs/assumptions.md assumes for the figures of lag and headroom; see test_assumptions.py."""

from __future__ import annotations

import pytest

from harness.servers.capture_server import CaptureServer

ROWS = 300
TEXT = "x" * 200


@pytest.mark.assumption(40)
@pytest.mark.only_in_all
def test_the_log_between_two_positions_has_the_bytes_that_were_written(server: CaptureServer) -> None:
    table = server.create_table({"id": "integer", "b": "varchar(200,0)"})
    with server.catalog() as catalog, server.writer() as writer:
        before, then = catalog.current_position(), catalog.log_space()
        for number in range(ROWS):
            writer.insert(table, id=str(number), b=TEXT)
        now = catalog.log_space()
    assert then is not None
    assert now is not None
    written = now.bytes_since(before) - then.bytes_since(before)
    assert ROWS * len(TEXT) - 2 * now.page_bytes <= written <= 20 * ROWS * len(TEXT)
    used_up = then.headroom(before) - now.headroom(before)
    assert used_up == written
