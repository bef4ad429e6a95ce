"""Many calls of an executor are on their way at once."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from informix_capture_client.errors import AccessRefused
from informix_cdc.executors import flight_client
from informix_cdc.executors.flight_client import fetched_ranges
from informix_cdc.executors.flight_protocol import Credentials, FlightAddress
from informix_checkpoints.spool import SegmentRange

NOBODY = FlightAddress("127.0.0.1", 1, "", Credentials(b"", b"", b""))


def test_an_error_does_not_wait_for_the_other_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    are_waiting = threading.Event()

    def fetched(_address: object, _whole: bool, piece: SegmentRange) -> list[pa.RecordBatch]:
        if piece.path == "0":
            raise AccessRefused("its file was removed.")
        are_waiting.wait()
        return []

    monkeypatch.setattr(flight_client, "_fetched", fetched)
    ranges = [SegmentRange(str(number), 0, 1, 1, 1, 0) for number in range(4)]
    ended = threading.Event()

    def read() -> None:
        with pytest.raises(AccessRefused, match="removed"):
            list(fetched_ranges(NOBODY, ranges))
        ended.set()

    reading = threading.Thread(target=read)
    reading.start()
    try:
        assert ended.wait(10)
    finally:
        are_waiting.set()
        reading.join()
