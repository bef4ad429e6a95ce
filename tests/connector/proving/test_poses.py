"""Each deviation that the emulator can pose is found, with the right number; nothing is left behind.

Rule: a row of the table is a pose, the proofs that may see it, and the assumptions that it contradicts.
What the assumptions leave open is noted instead: `notes`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from connector.proving.running import DATABASE, Hook, left_on, named, outcomes_of, quick, served
from harness.servers.options import changed
from informix_cdc.proving import ProofResult, prover
from informix_emulator import EmulatedServer
from informix_emulator.log.sessions import EmulatedSession
from informix_emulator.poses import POSES
from informix_emulator.server_faults import Faults
from odbc_driver.build import build_drivers

pytestmark = pytest.mark.slow

MEETS_A_RECORD = "numbers of timeouts"


@dataclass(frozen=True)
class Pose:
    """A way in which a server differs.

    Attributes:
        of: the argument, attribute or method of the emulator that makes it.
        proofs: that run, by name.
        contradicted: the numbers of all deviations.
        notes: texts that are noted.
        found: a text of a deviation.
        arguments: of the emulated server.
        when_served: is called once.
        on_session: is called with the server and each session's number, when it is activated.
        after: ends the pose, before everything is taken back.
    """

    of: str
    proofs: tuple[str, ...]
    contradicted: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()
    found: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    when_served: Hook = lambda _: None
    on_session: Any = None
    after: Hook = lambda _: None


def _numbers(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


def _unreadable_from_the_fifth(server: EmulatedServer, number: int) -> None:
    if number == 5:  # the sessions before it are closed
        server.make_log_unreadable()


def _announced_anew(server: EmulatedServer, number: int) -> None:
    (table,) = [name for name in server._tables if DATABASE in name]
    server.announce_as(number, table, "id integer, other varchar(9,0)")


FOREIGN = ("foreign transactions", "a temporary table")
OLDER = ("a transaction older than the session", "activation at a commtx")
POSITIONS = ("the current position", "the next position", "bytes of the log", "a commit flushes")
TABLE = [
    Pose("foreign_transactions", FOREIGN, _numbers(61, 90),
         ("transactions without captured rows are not shown",), "none of them",
         {"foreign_transactions": False}),
    Pose("late_begin", ("where a begintx comes",), notes=(
         "a BEGINTX is shown with the first captured row",), arguments={"late_begin": True}),
    Pose("hides_headless", OLDER, notes=(
         "a transaction that began before the session is not shown",
         "the COMMTX at which a session begins is not shown"), arguments={"hides_headless": True}),
    *(Pose("late_begin", ("restarts", "foreign transactions"), arguments={
         "late_begin": True, "hides_headless": hides, "foreign_transactions": shows})
      for hides in (True, False) for shows in (True, False)),
    Pose("wait_to_fill", ("numbers of timeouts", "ten sessions one after another"),
         arguments={"wait_to_fill": True}),
    Pose("unset_locale", ("locales of connections",), notes=(
         "a connection with no locale is accepted",), arguments={"unset_locale": None}),
    *(Pose("used_pages", POSITIONS, when_served=lambda server, pages=pages: setattr(
        server, "used_pages", pages)) for pages in ("begun", "full", "flushed")),
    Pose("buffer_log", POSITIONS, when_served=lambda server: server.buffer_log()),
    Pose("names_refusals", ("a refused login",), notes=("a refused login has no error number",),
         when_served=lambda server: setattr(server, "names_refusals", False)),
    Pose("table_age_seconds", ("when a partition was created",), _numbers(54),
         when_served=lambda server: setattr(server, "table_age_seconds", 1000.0)),
    Pose("hidden_tables", ("questions of the doctor",), _numbers(35), found="ha_role: ",
         when_served=lambda server: server.hidden_tables.add("sysha_type")),
    Pose("configuration", ("questions of the doctor",), _numbers(35), found="no row",
         when_served=lambda server: server.configuration.pop("LTXHWM")),
    Pose("late_release", ("open transactions",), _numbers(89), found="it does",
         on_session=lambda server, _: server.late_release.hold(),
         after=lambda server: server.late_release.let_go()),
    Pose("refuse_row_logging_off", ("switching row logging off",), _numbers(32),
         when_served=lambda server: server.refuse_row_logging_off(7)),
    Pose("kill_session", (MEETS_A_RECORD,), _numbers(10), found="CDC_E_INTERRUPT",
         on_session=lambda server, number: server.kill_session(number)),
    Pose("inject_error_record", (MEETS_A_RECORD,), _numbers(10), found="CDC_E_LSN",
         on_session=lambda server, number: server.inject_error_record(number, 0, "CDC_E_LSN")),
    Pose("announce_as", ("numbers of transactions",), found="a second TABSCHEMA",
         on_session=_announced_anew),
    Pose("silence", ("a session over sqli",), _numbers(12, 70), found="TIMEOUT records in a row",
         when_served=lambda server: server.silence(True)),
    Pose("stall_session", (MEETS_A_RECORD,), _numbers(10), found="TIMEOUT records in a row",
         on_session=lambda server, number: server.stall_session(number)),
    Pose("make_log_unreadable", ("ten sessions one after another",), _numbers(50),
         on_session=_unreadable_from_the_fifth),
    Pose("answer_empty", ("a session over sqli",), _numbers(12, 70), found="no bytes",
         on_session=lambda server, number: server.answer_empty(number, 1)),
]  # fmt: skip
# Arguments of the emulator that are no deviation: sizes, names, clocks, users, and where it listens.
NO_DEVIATION = {
    "self", "name", "users", "clock", "log_pages", "page_bytes", "log_count", "first_log",
    "timeout_seconds", "latency_seconds", "next_session_id", "cdc_users", "cdc_locale", "poses_as",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)


@pytest.fixture
def activated(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[int], object]]:
    """What is called with the number of each session that is activated."""
    hooks: list[Callable[[int], object]] = []
    activate = EmulatedSession.activate

    def activate_and_call(session: EmulatedSession, *arguments: Any) -> Any:
        answer = activate(session, *arguments)
        for hook in hooks:
            hook(session.id)
        return answer

    monkeypatch.setattr(EmulatedSession, "activate", activate_and_call)
    return hooks


@pytest.mark.parametrize("pose", TABLE, ids=[each.of for each in TABLE])
def test_a_pose_is_found_with_its_number_and_nothing_is_left(
    pose: Pose, activated: list[Callable[[int], object]]
) -> None:
    with served(**pose.arguments) as (server, options):
        pose.when_served(server)
        if pose.on_session is not None:
            activated.append(lambda number: pose.on_session(server, number))
        outcomes = outcomes_of(options, named(*pose.proofs), lambda: pose.after(server))
        assert left_on(server) == []
    deviations = [each for each in outcomes if each.result is ProofResult.DEVIATED]
    assert {number for each in deviations for number in each.contradicted} == pose.contradicted
    assert bool(deviations) == bool(pose.contradicted or pose.found)
    assert [each.reason for each in outcomes if each.result is ProofResult.NOT_TRIED] == []
    assert {*pose.notes} <= {note for each in outcomes for note in each.observed}
    assert pose.found in "".join(each.found for each in deviations)


def test_every_pose_of_the_emulator_is_in_the_table() -> None:
    arguments = set(inspect.signature(EmulatedServer.__init__).parameters) - NO_DEVIATION
    faults = {name for name in vars(Faults) if not name.startswith("_")} - {"sessions", "table"}
    assert arguments | faults <= {each.of for each in TABLE}


@pytest.mark.parametrize("name", POSES)
def test_versions_hold_what_depends_on_the_protocol(name: str) -> None:
    proofs = named(
        "a session over sqli", "values of every type", "protocol features", "a long row",
        "the login", "rows of gbase", "statements of gbase",
    )  # fmt: skip
    with served(name) as (server, options):
        outcomes = outcomes_of(options, proofs)
        assert left_on(server) == []
    tried = [each.result for each in outcomes if each.result is not ProofResult.NOT_TRIED]
    assert tried == [ProofResult.HELD] * (7 if name == "gbase8s" else 5)


def test_a_driver_holds_what_depends_on_it() -> None:
    proofs = named("a session over odbc", "values of every type", "large objects", "the login")
    with served() as (server, options):
        driver = str(build_drivers().narrow)
        over_odbc = changed(options, connection__transport="odbc", connection__driver=driver)
        outcomes = outcomes_of(over_odbc, proofs)
        assert left_on(server) == []
    assert [each.proof.name for each in outcomes if each.result is not ProofResult.HELD] == [
        "the login"
    ]
    assert outcomes[0].proof.assumptions == (1, 2, 11, 12, 14)


@pytest.mark.parametrize(("habit", "contradicted"), [("", ()), ("trim", (114,))])
def test_a_driver_that_cuts_blanks_is_found(habit: str, contradicted: tuple[int, ...]) -> None:
    proofs = named(
        "blanks at the end over odbc",
        "columns named like functions",
        "a snapshot of every type",
        "descriptions by a driver",
    )
    with served() as (server, options):
        driver, words = str(build_drivers().narrow), f"HABIT={habit}" if habit else ""
        over_odbc = changed(
            options,
            connection__transport="odbc",
            connection__driver=driver,
            connection__connection_string=words,
        )
        outcomes = outcomes_of(over_odbc, proofs)
        assert left_on(server) == []
    assert tuple(number for each in outcomes for number in each.contradicted) == contradicted
    deviated = [each.found for each in outcomes if each.result is not ProofResult.HELD]
    cut = "cut: varchar(20,0), nvarchar(20,0), lvarchar(200), lvarchar(4000)"
    assert deviated == ([cut] if contradicted else [])


def test_a_read_that_does_not_return_is_found(
    activated: list[Callable[[int], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("informix_cdc.server.connections._SILENT_SECONDS", 0.0)  # 3 s are left

    def make_unreadable(number: int) -> None:
        if number == 5:
            server.make_log_unreadable(reads_return=False)

    with served() as (server, options):
        activated.append(make_unreadable)
        (outcome,) = outcomes_of(options, named("ten sessions one after another"))
        assert left_on(server) == []
    assert (outcome.result, outcome.contradicted) == (ProofResult.DEVIATED, (50,))
    assert outcome.found == "a read did not return"


def test_a_busy_server_ends_a_proof_and_is_no_deviation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prover, "MOST_SECONDS", -1.0)  # no TIMEOUT record arrives in time
    with served() as (server, options):
        (outcome,) = outcomes_of(options, named("a temporary table"))
        assert left_on(server) == []
    assert outcome.result is ProofResult.NOT_TRIED
    assert outcome.reason == "the server is busy: other transactions kept coming"
