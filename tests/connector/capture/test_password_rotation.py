"""A password that changes while a stream runs: the next connection takes the one that holds by then."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from harness.capture.driving import (
    Served,
    anchor_of,
    drained,
    failure_of,
    figure,
    insert,
    next_offset,
    numbers,
    reader,
)
from harness.runs.patience import wait_until


@pytest.mark.fault(
    fault="the password was changed, in passwordFile or where passwordCommand finds it, and then the"
    " connection was lost",
    outcome="reconnects with the new one",
)
@pytest.mark.parametrize("way", ["passwordFile", "passwordCommand"])
@pytest.mark.only_in_all
def test_a_password_that_rotates_needs_no_restart(way: str, served: Served, tmp_path: Path) -> None:
    server, listening = served
    secret = tmp_path / "secret"
    secret.write_text(server.users["informix"])
    value = {"passwordFile": str(secret), "passwordCommand": f"cat {shlex.quote(str(secret))}"}[way]
    with reader(listening.port, password="", **{way: value}) as made:
        anchor = anchor_of(made)
        server.users["informix"] = "rotated"
        secret.write_text("rotated")
        listening.disconnect_all()
        last = insert(server, 1)
        assert numbers(drained(made, anchor, last)[0]) == [1]
        assert figure(made, "reconnects") == 1


@pytest.mark.slow
@pytest.mark.fault(
    fault="the file of passwordFile is empty for a moment, while it is being replaced",
    outcome="reconnects",
)
def test_a_file_that_is_being_replaced_is_read_again(served: Served, tmp_path: Path) -> None:
    server, listening = served
    secret = tmp_path / "secret"
    secret.write_text(server.users["informix"])
    with reader(listening.port, password="", passwordFile=str(secret)) as made:
        anchor = anchor_of(made)
        secret.write_text("")
        listening.disconnect_all()
        last = insert(server, 1)
        wait_until(lambda: figure(made, "reconnectAttempts") > 1)  # it has found the file empty
        secret.write_text(server.users["informix"])
        assert numbers(drained(made, anchor, last)[0]) == [1]


@pytest.mark.only_in_all
def test_a_password_that_stays_wrong_is_tried_once(served: Served, tmp_path: Path) -> None:
    """An account that is locked after three wrong passwords is not locked by us."""
    server, listening = served
    secret = tmp_path / "secret"
    secret.write_text(server.users["informix"])
    with reader(listening.port, password="", passwordFile=str(secret)) as made:
        anchor = anchor_of(made)
        server.users["informix"] = "rotated"
        listening.disconnect_all()
        error = failure_of(lambda: next_offset(made, anchor, seconds=30))
        assert figure(made, "reconnects") == 1
    assert "IFXCDC-0002" in str(error)
