"""A scratch database is used only if it is one, and everything is taken back, whatever happens."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from connector.proving.running import (
    DATABASE,
    PASSWORD,
    SERVER_DATABASES,
    left_on,
    named,
    outcomes_of,
    quick,
    served,
)
from harness.servers.options import changed
from informix_capture_client.errors import BadOption, InformixCdcError
from informix_cdc.commands.prove import _left_behind
from informix_cdc.options import SourceOptions
from informix_cdc.proving import Leftovers, ProofResult, Prover, run_proofs, scratch, scratch_prover
from informix_cdc.proving.proofs import ServerProof
from informix_emulator import EmulatedServer

Place = tuple[EmulatedServer, SourceOptions]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    quick(monkeypatch)
    with served() as found:
        yield found


def refusal(options: SourceOptions) -> str:
    with pytest.raises(BadOption) as refused, scratch_prover(options, Leftovers()):
        pytest.fail("the database was used")
    return str(refused.value)


def capturing(prover: Prover) -> None:
    """Leave a session, an open transaction and a table, as a proof that is interrupted does."""
    table = prover.plain_table()
    with prover.reading(table) as (_, writer):
        writer.begin()
        writer.insert(table, id="1")
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("it was not interrupted")


def test_a_database_that_is_missing_is_made_and_dropped(place: Place) -> None:
    server, options = place
    with scratch_prover(options, Leftovers()) as prover:
        assert set(server.databases) == SERVER_DATABASES | {DATABASE}
        assert prover.plain_table().name.startswith(scratch.PREFIX)
    assert left_on(server) == []


def test_an_empty_database_is_used_and_stays(place: Place) -> None:
    server, options = place
    server.create_database(DATABASE)
    with scratch_prover(options, Leftovers()) as prover:
        prover.plain_table()
    assert left_on(server) == [DATABASE]


@pytest.mark.parametrize("kind", ["table", "view", "synonym"])
def test_a_database_in_use_is_refused_and_stays_as_it_is(place: Place, kind: str) -> None:
    server, options = place
    server.create_database(DATABASE)
    server.create_table(f"{DATABASE}:informix.orders", "id integer", kind=kind)
    assert "is in use: it has 1 tables, views or synonyms" in refusal(options)
    assert list(server.databases[DATABASE].tables) == [("informix", "orders")]


def test_tables_of_a_run_that_was_killed_are_named(place: Place) -> None:
    server, options = place
    server.create_database(DATABASE)
    server.create_table(f"{DATABASE}:informix.{scratch.PREFIX}000001_1", "id integer")
    message = refusal(options)
    assert "1 tables of a run that was killed" in message
    released = message[message.index("informix-cdc release ") :]
    assert (
        f" informix.{scratch.PREFIX}000001_1 --host 127.0.0.1 --port {options.connection.port} "
        in released
    )
    assert released.endswith("--no-checkpoint")


def test_a_database_without_a_log_is_refused(place: Place) -> None:
    server, options = place
    server.create_database(DATABASE, logged=False)
    assert DATABASE in refusal(options)


@pytest.mark.parametrize("kind", [{"buffered": True}, {"ansi": True}, {"locale": "en_US.819"}])
def test_a_database_that_is_not_like_ours_is_refused(place: Place, kind: dict[str, Any]) -> None:
    server, options = place
    server.create_database(DATABASE, **kind)
    assert "ANSI-compliant, has buffered logging, or is not in UTF-8" in refusal(options)


@pytest.mark.parametrize("name", ["sysmaster", "syscdcv1"])
def test_a_database_of_the_server_is_refused(place: Place, name: str) -> None:
    assert "a database of the server" in refusal(changed(place[1], connection__database=name))


@pytest.mark.parametrize("name", ["scratch WITH LOG; x", "Scratch", "my-scratch", "a" * 129])
def test_a_name_that_is_no_plain_identifier_is_refused(place: Place, name: str) -> None:
    assert "not a plain identifier" in refusal(changed(place[1], connection__database=name))


def test_a_database_that_somebody_makes_meanwhile_is_not_dropped(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, options = place
    server.create_database(DATABASE)
    monkeypatch.setattr(scratch, "_require_scratch", lambda _: True)
    with pytest.raises(InformixCdcError), scratch_prover(options, Leftovers()):
        pytest.fail("it was used")
    assert left_on(server) == [DATABASE]


def test_a_server_without_syscdcv1_is_refused(place: Place) -> None:
    server, options = place
    del server.databases["syscdcv1"]
    assert "no syscdcv1" in refusal(options)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT interrupt: a run in the background, and some commands, ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_a_proof_takes_everything_back(place: Place) -> None:
    server, options = place
    proof = ServerProof("interrupted", (), "", capturing)
    with pytest.raises(KeyboardInterrupt), scratch_prover(options, Leftovers()) as prover:
        list(run_proofs(prover, [proof]))
    assert left_on(server) == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_of_ours_is_an_outcome_and_takes_everything_back(place: Place) -> None:
    def failing(prover: Prover) -> None:
        with prover.reading(prover.plain_table()):
            raise LookupError(PASSWORD)

    server, options = place
    (outcome,) = outcomes_of(options, [ServerProof("failing", (4,), "", failing)])
    assert outcome.result is ProofResult.DEVIATED
    assert outcome.found == "LookupError in our code"
    assert left_on(server) == []


def test_row_logging_that_does_not_go_off_is_reported(place: Place) -> None:
    server, options = place
    left = Leftovers()
    with scratch_prover(options, left) as prover:
        outcomes = list(run_proofs(prover, named("the row logging flag")))
        server.refuse_row_logging_off(10**6)
    assert [each.result for each in outcomes] == [ProofResult.HELD]
    assert len(left.tables) == 2
    assert left.database == DATABASE
    assert "SQL error -19816" in left.reason
    assert DATABASE in left_on(server)


def test_a_lost_server_is_no_deviation(place: Place) -> None:
    server, options = place

    def losing(prover: Prover) -> None:
        prover.plain_table()
        server.users.clear()  # nobody is let in any more
        prover.plain_table()

    left = Leftovers()
    with scratch_prover(options, left) as prover:
        (outcome,) = run_proofs(prover, [ServerProof("losing", (4,), "", losing)])
        server.users["informix"] = PASSWORD
    assert outcome.result is ProofResult.NOT_TRIED
    assert not left
    assert left_on(server) == []


def test_a_trusted_connection_tries_no_other_login(place: Place) -> None:
    server, options = place
    server.trusted_user = "informix"
    trusted = changed(
        options,
        connection__password="",
        connection__authentication="trusted",
        connection__user="informix",
    )
    (outcome,) = outcomes_of(trusted, named("a refused login"))
    assert outcome.reason == "needs authentication by a password"
    assert left_on(server) == []


def test_a_user_who_may_not_connect_is_told_so(place: Place) -> None:
    server, options = place
    with (
        pytest.raises(InformixCdcError, match="refused user"),
        scratch_prover(changed(options, connection__password="wrong"), Leftovers()),
    ):
        pytest.fail("let in")
    assert left_on(server) == []


def test_what_is_left_behind_is_named_with_the_command_that_releases_it(place: Place) -> None:
    _, options = place
    shown = _left_behind(Leftovers(["t1", "t2"], reason="IFXCDC-0002"), options)
    assert shown.startswith("Left behind: t1, t2 (IFXCDC-0002). ")
    command = shown[shown.index("informix-cdc release ") :]
    assert command.startswith("informix-cdc release informix.t1 informix.t2 --host ")
    assert command.endswith(f"--database {DATABASE} --transport sqli --no-checkpoint")
    assert _left_behind(Leftovers(database="scratch"), options).endswith("Drop it.")
    assert _left_behind(Leftovers(), options) == "Nothing is left behind on the server."
