"""The rows of a stream without Spark, as `informix-cdc tail` and `prove` read them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from tempfile import TemporaryDirectory

from harness.servers.options import changed
from informix_capture_client.shapes import ChangeRow
from informix_cdc.options import SourceOptions
from informix_cdc.reading import FollowedStream


def rows_without_spark(
    options: SourceOptions, on_ready: Callable[[], object] = lambda: None
) -> Generator[list[ChangeRow], None, None]:
    """Yield the rows; call `on_ready` once, when every later commit will be among them."""
    with TemporaryDirectory() as spool:
        stream = FollowedStream(changed(options, spool__path=spool, rows__truncate="emit"))
        with closing(stream):
            while True:
                is_new = not stream.offset.is_started
                yield from stream.next_batch()
                if is_new and stream.offset.is_started:
                    on_ready()
