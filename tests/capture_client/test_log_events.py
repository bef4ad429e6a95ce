"""The log: each event declared once, one line each, and every call keeps to its declaration."""

from __future__ import annotations

import ast
import logging
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.capture.told import parsed
from informix_capture_client import log_events
from informix_capture_client.log_events import (
    CONNECTION_LOST,
    EVENTS,
    LogEvent,
    logfmt,
)

ROOT = Path(__file__).parents[2]
SOURCES = [path for folder in ("connector", "checkpoints", "capture_client") for path in
           sorted((ROOT / folder).rglob("*.py"))]  # fmt: skip
LOGGING = ("debug", "info", "warning", "error", "exception", "critical", "log")
DECLARED = {name: value for name, value in vars(log_events).items() if isinstance(value, LogEvent)}


@given(st.dictionaries(st.from_regex(r"[a-z_]+", fullmatch=True), st.text(min_size=1), min_size=1))
def test_a_line_is_one_line_and_reads_back_as_what_was_told(facts: dict[str, str]) -> None:
    line = logfmt(facts)
    assert len(line.splitlines()) == 1
    assert parsed(line) == facts


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (3, "x=3"),
        (True, "x=true"),
        ("", 'x=""'),
        ("47:0x5e018", "x=47:0x5e018"),
        ("a=b", 'x="a=b"'),
        ("two words", 'x="two words"'),
        ('said "no"\n', r'x="said \"no\"\n"'),
        ("naïve", "x=naïve"),
        (Path("/spool/s"), "x=/spool/s"),
    ],
)
def test_values_are_quoted_where_that_is_needed_only(value: object, shown: str) -> None:
    assert logfmt({"x": value}) == shown


def test_an_event_is_one_line_with_its_keys_in_their_order(caplog: pytest.LogCaptureFixture) -> None:
    CONNECTION_LOST.log(logging.getLogger("x"), reason="gone\naway", failures=2, stream=None)
    (record,) = caplog.records
    assert record.getMessage() == r'event=connection_lost failures=2 reason="gone\naway"'
    assert (record.levelname, record.funcName) == ("WARNING", caplog.records[0].funcName)
    assert record.__dict__["event"] == "connection_lost"
    assert record.__dict__["facts"] == {"stream": None, "failures": 2, "reason": "gone\naway"}


def test_an_event_without_one_of_its_keys_is_a_bug() -> None:
    with pytest.raises(KeyError):
        CONNECTION_LOST.log(logging.getLogger("x"), reason="gone")


def test_every_event_is_listed_by_its_own_name() -> None:
    assert {event.name: event for event in DECLARED.values()} == EVENTS
    assert all(name.lower() == event.name for name, event in DECLARED.items())
    assert len(EVENTS) == len(DECLARED)


@cache
def calls() -> list[tuple[Path, str, ast.Call]]:
    """Return all that may log, in all sources: who is called is written out of these alone."""
    return [
        (path, ast.unparse(node.func), node)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LOGGING
    ]


@pytest.mark.slow
def test_nothing_is_logged_but_declared_events() -> None:
    plain = re.compile(rf"(\w*logger|logging)\.({'|'.join(LOGGING)})")
    found = {(path.name, called) for path, called, _ in calls() if plain.fullmatch(called)}
    # The emulator is a server of its own: it imports nothing of ours, log events either.
    files = ("conversation.py", "session.py", "serving.py", "watching.py")
    of_the_emulator = {(file, "logger.warning") for file in files}
    assert found == {("log_events.py", "logger.log"), *of_the_emulator}


@pytest.mark.slow
def test_every_event_is_logged_somewhere_with_exactly_its_keys() -> None:
    logged: dict[str, set[tuple[str, ...]]] = {}
    for _, called, call in calls():
        name = called.removesuffix(".log")
        if name in DECLARED and called.endswith(".log"):
            keys = sorted(str(keyword.arg) for keyword in call.keywords)
            logged.setdefault(name, set()).add(tuple(keys))
    assert set(logged) == set(DECLARED) - LOGGED_BY_CHOICE
    for name, seen in logged.items():
        if seen != {("None",)}:  # the facts come as one dictionary
            assert seen == {tuple(sorted(DECLARED[name].keys))}, name


LOGGED_BY_CHOICE = {"READING_PAUSED", "READING_RESUMED"}  # one call logs the one or the other
