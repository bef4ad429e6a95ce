"""Which transactions count as older than a start in the past, over scripted sessions."""

from __future__ import annotations

import pytest

from harness.capture.streams import begin, commit, error, rollback, row, timeout
from harness.servers.scripted_transport import ScriptedTransport
from informix_capture_client.errors import InformixCdcError
from informix_capture_client.session.session import CaptureSession, SessionSettings
from informix_capture_client.stream import transactions_older_than_start


def older(*reads: bytes, upto: int = 900) -> frozenset[int]:
    transport = ScriptedTransport(reads=[*reads, timeout(0)])
    return transactions_older_than_start(CaptureSession(transport, SessionSettings(server="s")), upto)


def test_whoever_shows_records_without_a_beginning_is_older() -> None:
    assert older(begin(10, 1, 0, 0) + row(11, 1) + row(12, 2) + rollback(13, 3)) == {2, 3}


def test_whoever_has_begun_in_an_earlier_read_is_not_older() -> None:
    assert older(begin(10, 1, 0, 0), row(11, 1), row(12, 2), commit(13, 1, 0)) == {2}


def test_a_new_owner_of_an_id_does_not_make_the_former_one_young() -> None:
    assert older(commit(10, 1, 0) + begin(11, 1, 0, 0), row(12, 1)) == {1}


@pytest.mark.parametrize("end", [commit(900, 8, 0), begin(900, 8, 0, 0), timeout(5)])
def test_nothing_is_read_behind_the_end_of_the_log(end: bytes) -> None:
    assert 9 not in older(end, row(901, 9))


def test_an_error_of_the_session_is_raised() -> None:
    with pytest.raises(InformixCdcError):
        older(error(0, -83713))
