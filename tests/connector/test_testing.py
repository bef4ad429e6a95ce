"""The server of examples, and of other people's tests."""

from __future__ import annotations

from harness.capture.driving import anchor_of, drained
from informix_cdc.options.source import SourceOptions
from informix_cdc.server import look_up_tables
from informix_cdc.spark.reader import InformixStreamReader
from informix_cdc.spark.schema import to_spark
from informix_cdc.testing import emulated_source


def test_a_server_of_one_line_is_captured_by_the_options_that_come_with_it() -> None:
    with emulated_source({"informix.t": "id integer"}, keeps_rows=True) as (server, options):
        source = SourceOptions.parse(options)
        made = InformixStreamReader(source, to_spark(look_up_tables(source).schema()))
        try:
            start = anchor_of(made)
            transaction = server.begin()
            transaction.insert("stores:informix.t", {"id": 7})
            rows, _ = drained(made, start, transaction.commit())
        finally:
            made.stop()
    assert [row["id"] for row in rows] == [7]
