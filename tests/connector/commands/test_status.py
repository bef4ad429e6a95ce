"""`informix-cdc status`: what is told, to people and to machines."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.commands.commands import refusal, run_plain, server_options
from connector.commands.conftest import start
from connector.commands.printed_commands import commands_in
from harness.capture.driving import (
    Served,
    anchor_of,
    insert,
    reader,
)
from harness.runs.patience import patiently, wait_until
from harness.servers.stores import ORDERS, PASSWORD, listening_stores
from harness.spark.checkpoints import offset, plan, run_batches
from informix_capture_client.positions import log_page, show
from informix_cdc.commands import status as status_command
from informix_cdc.options import PASSWORD_VARIABLE

NOW, NOW_TEXT = 1_700_000_000, "2023-11-14T22:13:20+00:00"
LOG_BYTES = 8 * 2048


@pytest.fixture
def served() -> Iterator[Served]:
    """Four log files of eight pages, the first of which is number 40."""
    arguments = {"log_pages": 8, "log_count": 4, "first_log": 40, "clock": lambda: NOW}
    with listening_stores(timeout_seconds=0.02, **arguments) as (server, listening):
        yield server, listening


def status(served: Served, *arguments: str) -> Any:
    result = run_plain("status", *server_options(served[1]), *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def told(served: Served, *arguments: str) -> str:
    result = run_plain("status", *server_options(served[1]), *arguments)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_a_quiet_server_says_so(served: Served) -> None:
    found = status(served)
    assert (found["server"], found["clock"]) == ("informix", NOW_TEXT)
    assert found["sessions"] == found["checkpoints"] == []
    assert found["log"] == {
        "current": "40:0x0",
        "oldest": "40:0x0",
        "logs": 1,
        "totalBytes": 4 * LOG_BYTES,
        "neverUsedBytes": 3 * LOG_BYTES,
    }
    assert "No capture session is open." in told(served)


def test_a_user_who_may_not_see_the_sessions_is_told_the_log_and_the_grant(served: Served) -> None:
    """As bootcdc.sql leaves it: null is not the same as no session."""
    served[0].users["joe"] = PASSWORD
    served[0].cdc_users |= {"joe"}
    found = status(served, "--user=joe")
    assert found["sessions"] is None
    assert found["log"]["logs"] == 1
    text = told(served, "--user=joe")
    assert "Capture sessions: the server's capture sessions cannot be listed" in text
    assert "GRANT SELECT ON syscdcsess" in text
    assert "No capture session is open" not in text


def test_open_sessions_are_told_with_what_they_capture(served: Served) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor_of(made)
        (session_id,) = server.sessions()
        assert status(served)["sessions"] == [
            {
                "session": session_id,
                "apiVersion": "1.1",
                "created": NOW_TEXT,
                "timeoutSeconds": 1,
                "errorCode": 0,
                "tables": ["stores:informix.orders"],
            }
        ]
        line = f"{session_id} 2023-11-14 22:13:20 UTC 1 s - stores:informix.orders"
        assert line in told(served)


def test_checkpoints_are_told_with_their_distance_to_both_ends_of_the_log(
    served: Served, tmp_path: Path
) -> None:
    server, _ = served
    here = log_page(40, 2)
    run_batches(tmp_path, offset(here + 24, here))
    for order in range(200):  # 64 bytes and the row: several pages
        insert(server, order)
    while server.log.current.number < 42:
        server.switch_log()
    (found,) = status(served, f"--checkpoint={tmp_path}")["checkpoints"]
    space = server.log
    written = sum(file.used_pages for file in space.files if file.number < 42) + space.flush_page() - 2
    assert found["checkpoint"] == str(tmp_path)
    assert (found["commit"], found["restart"]) == (show(here + 24), show(here))
    assert found["behind"]["bytes"] == written * 2048
    assert found["behind"]["logs"] == server.log.current.number - 40
    assert server.oldest_log() == 40
    assert found["untilOverwritten"]["logs"] == 0
    text = told(served, f"--checkpoint={tmp_path}")
    assert f"{tmp_path}, source 0" in text
    assert f"up to {show(here + 24)}; a restart reads from {show(here)}" in text
    assert f"to the end of the log: {found['behind']['logs']} logs, " in text
    assert "headroom, until it is overwritten: 0 logs, " in text


def test_a_checkpoint_whose_log_was_overwritten_is_told_in_capitals(
    served: Served, tmp_path: Path
) -> None:
    server, _ = served
    run_batches(tmp_path, offset(log_page(40, 1), log_page(40, 1)))
    for _ in range(4):
        server.switch_log()
    (found,) = status(served, f"--checkpoint={tmp_path}")["checkpoints"]
    assert found["untilOverwritten"] is None
    assert "OVERWRITTEN: a restart loses data" in told(served, f"--checkpoint={tmp_path}")


def test_a_checkpoint_of_another_server_is_told(served: Served, tmp_path: Path) -> None:
    run_batches(tmp_path, offset(log_page(99, 1), log_page(99, 1)))
    assert status(served, f"--checkpoint={tmp_path}")["checkpoints"][0]["isBeyondEnd"]
    assert "BEYOND THE END OF THE LOG" in told(served, f"--checkpoint={tmp_path}")


def test_a_checkpoint_a_little_beyond_the_end_is_not_said_to_be_up_to_date(
    served: Served, tmp_path: Path
) -> None:
    """A server that was restored, or is new, may end within what a log buffer holds."""
    run_batches(tmp_path, offset(log_page(40, 900), log_page(40, 0)))
    (found,) = status(served, f"--checkpoint={tmp_path}")["checkpoints"]
    assert (found["isBeyondEnd"], found["isAheadOfLog"]) == (False, True)
    shown = told(served, f"--checkpoint={tmp_path}")
    assert "BEYOND THE END OF THE LOG" in shown
    assert "lag" not in shown
    assert "headroom" not in shown


def test_watching_asks_again_until_it_is_interrupted(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = served
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        server.switch_log()
        if len(slept) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(status_command, "sleep", sleep)
    result = run_plain("status", *server_options(served[1]), "--json", "--watch=2")
    assert result.exit_code == 0
    assert slept == [2, 2, 2]
    positions = [json.loads(line)["log"]["current"] for line in result.output.splitlines()]
    assert positions == ["40:0x0", "41:0x0", "42:0x0"]
    slept.clear()
    assert "Log: at 45:0x0" in run_plain("status", *server_options(served[1]), "--watch=2").output


@pytest.mark.slow
@pytest.mark.only_in_all
def test_watching_into_a_pipe_shows_each_look_when_it_is_taken(served: Served) -> None:
    given = ["status", *server_options(served[1]), "--watch=0.1"]
    process = start(*given, environment={PASSWORD_VARIABLE: PASSWORD})
    assert process.stdout is not None
    pipe, seen = process.stdout.fileno(), bytearray()
    os.set_blocking(pipe, False)

    def has_two_looks() -> bool:
        with contextlib.suppress(BlockingIOError):
            seen.extend(os.read(pipe, 1 << 16))
        return seen.count(b"Log: ") >= 2

    try:
        wait_until(has_two_looks, 20, seen.decode)
        os.set_blocking(pipe, True)
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=patiently(10))
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0


def test_one_log_is_told_as_one_and_several_as_several(served: Served) -> None:
    assert "only log 40 is kept" in told(served)
    served[0].switch_log()
    assert "logs 40 to 41 are kept" in told(served)


def test_a_loss_that_was_reported_is_told_as_by_offsets(served: Served, tmp_path: Path) -> None:
    here = log_page(40, 0)
    run_batches(tmp_path, {**offset(here, here), "lost": ["ROW_LOGGING_OFF", "it was off."]})
    (found,) = status(served, f"--checkpoint={tmp_path}")["checkpoints"]
    assert found["lost"] == "it was off."
    assert "Stopped at a reported data loss: it was off." in told(served, f"--checkpoint={tmp_path}")


def test_a_spoilt_checkpoint_is_one_line(served: Served, tmp_path: Path) -> None:
    arguments = [*server_options(served[1]), f"--checkpoint={tmp_path}"]
    assert str(tmp_path) in refusal(run_plain("status", *arguments), exit_code=2)


def test_offsets_with_a_server_tells_how_far_it_is_from_overwriting_them(
    served: Served, tmp_path: Path
) -> None:
    run_batches(tmp_path, offset(log_page(40, 0), log_page(40, 0)))
    (source,) = status(served, "--offsets", f"--checkpoint={tmp_path}")["checkpoints"]
    assert source["untilOverwritten"] == {
        "logs": 0, "bytes": 4 * LOG_BYTES, "percent": 100.0,
    }  # fmt: skip
    text = told(served, "--offsets", f"--checkpoint={tmp_path}")
    assert "headroom, until it is overwritten: 0 logs, 64 KiB, 100.0 %" in text
    assert "A restart reads the log from 40:0x0" in text


def test_offsets_without_a_checkpoint_are_refused() -> None:
    assert "--offsets requires --checkpoint." in run_plain("status", "--offsets").stderr


def test_offsets_with_half_a_server_says_which_half_is_missing(tmp_path: Path) -> None:
    run_batches(tmp_path, offset(1, 1))
    line = refusal(
        run_plain("status", "--offsets", f"--checkpoint={tmp_path}", "--server=informix"), exit_code=2
    )
    assert "--host is missing" in line


def test_snapshots_show_how_far_they_are_by_table(served: Served, tmp_path: Path) -> None:
    here = log_page(40, 0)
    tables = {
        "informix.items": {"digest": "0badf00d", "since": 0, "snapshot": {"done": True, "rows": 20}},
        "informix.lines": {"digest": "0badf00e", "since": 0},
        "informix.orders": {
            "digest": "c0ffee01",
            "since": 0,
            "snapshot": {"key": ["order_num"], "after": ["1042"], "rows": 5000},
        },
    }
    run_batches(tmp_path, {**offset(here, here), "tables": tables, "chunk": 3})
    (found,) = status(served, f"--checkpoint={tmp_path}")["checkpoints"]
    assert found["snapshots"] == {
        "informix.items": {"rows": 20, "done": True},
        "informix.orders": {"rows": 5000, "done": False},
    }
    shown = told(served, f"--checkpoint={tmp_path}")
    assert "snapshots: informix.items done, 20 rows; informix.orders 5,000 rows so far" in shown
    of_offsets = run_plain("status", "--offsets", f"--checkpoint={tmp_path}").output
    words = " ".join(of_offsets.split())
    assert "informix.orders (snapshot running, 5,000 rows)" in words
    assert "informix.items (snapshot done, 20 rows), informix.lines," in words


def test_rows_of_a_snapshot_that_no_batch_has_committed_are_read_and_no_more(
    served: Served, tmp_path: Path
) -> None:
    here = log_page(40, 0)
    planned = {"digest": "0badf00d", "since": 0, "snapshot": {"done": True, "rows": 20}}
    begun = {"digest": "0badf00d", "since": 0, "snapshot": {"key": ["id"], "after": ["1"], "rows": 2}}
    begins, ends = (
        {**offset(here, here), "tables": {"informix.items": state}, "chunk": chunk}
        for state, chunk in ((begun, 1), (planned, 2))
    )
    plan(run_batches(tmp_path, begins), 1, ends)
    line = "snapshots: informix.items done, 20 rows (not committed yet)"
    assert line in told(served, f"--checkpoint={tmp_path}")
    words = " ".join(run_plain("status", "--offsets", f"--checkpoint={tmp_path}").output.split())
    assert "informix.items (snapshot done, read but not committed, 20 rows)" in words
    assert "A restart runs batch 1 again, which is not committed" in words


def test_sessions_that_may_not_be_listed_are_not_called_none() -> None:
    with listening_stores() as (server, listening):
        server.users, server.cdc_users = {"app": PASSWORD}, frozenset({"app"})
        server.table(ORDERS).full_row_logging = True
        arguments = ("status", *server_options(listening), "--user=app", "--row-logging")
        printed = " ".join(run_plain(*arguments).output.split())
        shown = json.loads(run_plain(*arguments, "--json").stdout)
    assert "captures is not known" in printed
    assert "GRANT SELECT ON syscdcsess" in printed
    assert shown == {"rowLogging": [{"table": "stores:informix.orders", "sessions": None}]}


def test_all_tables_with_full_row_logging_are_listed_with_how_to_switch_it_off(
    served: Served,
) -> None:
    server, listening = served
    assert status(served, "--row-logging") == {"rowLogging": []}
    assert "on for no table" in told(served, "--row-logging")
    server.create_database("other", logged=True, locale="en_US.utf8")
    for name in ("other:informix.late", 'other:ann."Odd Name"', "stores:informix.quiet"):
        server.create_table(name, "id integer")
    with reader(listening.port) as made:
        anchor_of(made)
        for name in ("other:informix.late", 'other:ann."Odd Name"'):
            server.table(name).full_row_logging = True
        [session] = server.sessions()
        assert status(served, "--row-logging") == {
            "rowLogging": [
                {"table": 'other:ann."Odd Name"', "sessions": []},
                {"table": "other:informix.late", "sessions": []},
                {"table": "stores:informix.orders", "sessions": [session]},
            ]
        }
        printed = run_plain("status", *server_options(listening), "--row-logging").output
    shown = " ".join(printed.split())
    assert "Full row logging is on for 3 tables" in shown
    assert f"stores:informix.orders captured by session {session}" in shown
    first, second = commands_in(printed)
    assert "informix.orders" in second
    result = run_plain(*shlex.split(first)[1:], "--yes")
    assert result.exit_code == 0, result.output
    assert [each["table"] for each in status(served, "--row-logging")["rowLogging"]] == [
        "stores:informix.orders"
    ]
