"""The sample run printed in chapter 7 of the CDC guide, byte for byte."""

from __future__ import annotations

import datetime
from collections.abc import Callable

from emulator.raw_client import RawClient
from informix_emulator import EmulatedServer

MOMENT = datetime.datetime(2008, 10, 23, 19, 1, 51, tzinfo=datetime.UTC).timestamp()
LOG_47 = 47 << 32


def test_the_sample_session_of_the_guide_is_reproduced(connect: Callable[..., RawClient]) -> None:
    server = EmulatedServer("informix", clock=lambda: MOMENT, next_session_id=39)
    server.create_database("test")
    server.create_table("test:informix.t1", "col1 serial, col2 char(1), col3 int8")
    server.move_to(LOG_47 | 0x5E018)
    client = connect(server, database="test")
    assert client.open(timeout=0, max_recs=1) == 39
    assert client.call("cdc_set_fullrowlogging", "test:informix.t1", 1) == 0
    client.capture("test:informix.t1", "col1,col2,col3", 0)
    client.activate()
    with server.transaction(user_id=300, transaction_id=24) as tx:
        tx.insert("test:informix.t1", {"col1": 1, "col2": "a", "col3": 1000})

    schema, begin, insert, commit, timeout = client.until_timeout()
    assert schema.payload == b"col1 serial, col2 char(1), col3 int8\0"
    assert schema.header.hex() == "00000000000000000000000f0000000300000000"
    assert (begin.sequence, insert.sequence, commit.sequence) == (
        LOG_47 | 0x5E018,
        LOG_47 | 0x5E04C,
        LOG_47 | 0x5E09C,
    )
    assert begin.header[8:].hex() == "00000018000000004900ca1f0000012c"
    assert insert.payload.hex() == "00000001610001000003e800000000"
    assert commit.header[8:].hex() == "00000018000000004900ca1f"
    assert timeout.sequence == commit.sequence
    assert client.call("cdc_endcapture", 39, 0, "test:informix.t1") == 0
    assert client.call("cdc_set_fullrowlogging", "test:informix.t1", 0) == 0
    assert client.call("cdc_closesess", 39) == 0
