"""`informix-cdc release`: what has to be said, who is in the way, and what is switched."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.commands.commands import refusal, run
from connector.commands.stopped_queries import checkpoint_option, is_logged, stopped_query
from harness.capture.driving import Served, anchor_of, reader
from harness.servers.stores import CUSTOMERS, ORDERS, PASSWORD
from informix_cdc.commands import release as release_command
from informix_cdc.commands import row_logging

# what has to be said


def test_release_demands_a_checkpoint_or_the_word_that_there_is_none(served: Served) -> None:
    server, listening = served
    server.set_full_row_logging(ORDERS, on=True)
    for arguments in ((), ("--checkpoint=/somewhere", "--no-checkpoint")):
        line = refusal(run(listening, "release", "informix.orders", "--yes", *arguments), exit_code=2)
        assert "--checkpoint PATH" in line
    assert is_logged(server)


def test_it_asks_and_leaves_everything_alone_without_a_yes(served: Served) -> None:
    server, listening = served
    server.set_full_row_logging(ORDERS, on=True)
    result = run(listening, "release", "informix.orders", "--no-checkpoint", answer="n\n")
    assert result.exit_code == 1
    assert "will be switched off on server informix" in result.stderr
    assert is_logged(server)


def test_without_a_query_it_is_switched_off_and_how_to_undo_that_is_told(served: Served) -> None:
    server, listening = served
    server.set_full_row_logging(ORDERS, on=True)
    result = run(listening, "release", "informix.orders", "--no-checkpoint", answer="y\n")
    assert result.exit_code == 0
    assert not is_logged(server)
    assert "informix-cdc acquire informix.orders" in result.stdout


def test_a_table_that_is_released_already_needs_nothing(served: Served) -> None:
    _, listening = served
    result = run(listening, "release", "informix.orders", "--no-checkpoint", "--yes")
    assert result.exit_code == 0
    assert "already off" in result.stderr


def test_the_acquire_leaves_out_what_a_pattern_matches_and_was_off_already(served: Served) -> None:
    server, listening = served
    server.set_full_row_logging(ORDERS, on=True)
    result = run(listening, "release", "informix.*", "--no-checkpoint", "--yes")
    assert result.exit_code == 0, result.output
    assert "informix.customers: full row logging is already off" in result.stderr
    assert "informix-cdc acquire informix.orders" in result.stdout
    assert "customers" not in result.stdout


def test_a_table_that_nobody_can_capture_is_released_too(served: Served) -> None:
    server, listening = served
    server.create_table("stores:informix.notes", "body text", full_row_logging=True)
    result = run(listening, "release", "informix.notes", "--no-checkpoint", "--yes")
    assert result.exit_code == 0
    assert not is_logged(server, "stores:informix.notes")


# while it is captured


def test_a_user_who_may_not_see_who_captures_is_refused_before_anything_is_asked(
    served: Served,
) -> None:
    server, listening = served
    server.set_full_row_logging(ORDERS, on=True)
    server.users["joe"] = PASSWORD
    server.cdc_users |= {"joe"}
    result = run(listening, "release", "informix.orders", "--no-checkpoint", "--user=joe")
    line = refusal(result)
    assert "capture sessions cannot be listed" in line
    assert "Connect as user informix" in line
    assert is_logged(server)


@pytest.mark.parametrize("choice", ["--no-checkpoint", "--checkpoint"])
def test_a_table_that_a_session_captures_is_refused_and_the_session_is_named(
    choice: str, served: Served, tmp_path: Path
) -> None:
    server, listening = served
    stopped_query(served, tmp_path)
    with reader(listening.port) as made:
        anchor_of(made)
        (session_id,) = server.sessions()
        arguments = [choice] if choice == "--no-checkpoint" else [checkpoint_option(tmp_path)]
        result = run(listening, "release", "informix.orders", *arguments)
        line = refusal(result)
    assert result.stderr.count("\n") == 2  # that it is waited for, and the error: nothing is asked
    assert f"stores:informix.orders is captured by session {session_id}" in line
    assert "Stop the queries" in line
    assert is_logged(server)


@pytest.mark.only_in_all
def test_a_session_of_another_table_is_no_reason_to_refuse(served: Served) -> None:
    server, listening = served
    server.set_full_row_logging(CUSTOMERS, on=True)
    with reader(listening.port) as made:
        anchor_of(made)
        result = run(listening, "release", "informix.customers", "--no-checkpoint", "--yes")
    assert result.exit_code == 0
    assert not is_logged(server, CUSTOMERS)


@pytest.mark.fault(
    fault="a query starts while its tables are released",
    outcome="the server refuses (-19816), the session is named, row logging stays on",
)
def test_a_session_that_begins_after_the_first_look_is_named_too(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, listening = served
    monkeypatch.setattr(release_command, "require_not_captured", lambda *_: None)
    with reader(listening.port) as made:
        anchor_of(made)
        (session_id,) = server.sessions()
        line = refusal(run(listening, "release", "informix.orders", "--no-checkpoint", "--yes"))
    assert f"is captured by session {session_id}" in line
    assert "remains on" in line


# what live servers need


@pytest.mark.fault(
    fault="row logging cannot be switched off for some seconds after a session",
    outcome="tried four times",
)
def test_switching_off_is_tried_four_times(served: Served) -> None:
    server, listening = served
    server.set_full_row_logging(ORDERS, on=True)
    server.refuse_row_logging_off(3)
    result = run(listening, "release", "informix.orders", "--no-checkpoint", "--yes")
    assert result.exit_code == 0
    assert not is_logged(server)


def test_a_server_that_refuses_on_is_quoted_and_the_table_stays_as_it_is(served: Served) -> None:
    server, listening = served
    server.set_full_row_logging(ORDERS, on=True)
    server.refuse_row_logging_off(4)
    line = refusal(run(listening, "release", "informix.orders", "--no-checkpoint", "--yes"))
    assert "-19816" in line
    assert "no session is listed that captures it" in line
    assert is_logged(server)


@pytest.mark.parametrize("command", ["release", "acquire"])
def test_a_switch_that_does_not_show_in_the_flag_is_an_error(
    command: str, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, listening = served
    server.set_full_row_logging(ORDERS, on=command == "release")
    monkeypatch.setattr(server, "set_full_row_logging", lambda *_: None)
    arguments = ["--no-checkpoint", "--yes"] if command == "release" else []
    assert "oncheck -pt" in refusal(run(listening, command, "informix.orders", *arguments))


def test_a_session_that_is_just_closing_is_waited_for(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor_of(made)
        monkeypatch.setattr(row_logging.time, "sleep", lambda _: made.stop())
        result = run(listening, "release", "informix.orders", "--no-checkpoint", "--yes")
    assert result.exit_code == 0, result.output
    assert "is captured by session" in result.stderr
    assert "waiting up to" in result.stderr
    assert not is_logged(server)
