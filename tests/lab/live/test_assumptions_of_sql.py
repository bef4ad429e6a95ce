"""What docs/assumptions.md assumes of SQL that the emulator's engine answers, one test or more each."""

from __future__ import annotations

import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client.records.records import Begin, Commit
from informix_cdc.proving.reading import Reader


@pytest.mark.assumption(61)
def test_a_temporary_table_that_is_made_is_a_transaction_of_the_log(server: CaptureServer) -> None:
    captured = server.create_table({"id": "integer"})
    with server.session(captured) as session:
        server.run(
            "create temp table informix_cdc_marker (n integer) with no log",
            "drop table informix_cdc_marker",
        )
        reader = Reader(session)
        reader.until(lambda _: bool(reader.of(Commit)))
    assert reader.of(Begin)
    assert reader.of(Commit)
    assert reader.rows == []
