"""No sentence of the doctor says anything of a fact that the server did not give.

Every fact alone, every two of them, and all of them are left unanswered, in set-ups in which all is
well and in which much is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import combinations

import pytest

from connector.doctor.set_ups import LOG_SPACE, SOUND, examine, table_facts, with_server
from informix_capture_client.catalog.set_up import DatabaseLogging, HaRole
from informix_capture_client.dialects import GBASE_8S
from informix_capture_client.findings import Finding, State, Unanswered
from informix_cdc.doctor.checks import SetUp
from informix_cdc.server.server_facts import CdcFacts, ServerFacts, TableFacts, why_no_table

REASON = "the question was refused."
NO_ANSWER = Unanswered(REASON, "Grant the right to ask.")
PARTS = {"server": ServerFacts, "cdc": CdcFacts, "tables": TableFacts}
FACTS = [
    *((part, field.name) for part, kind in PARTS.items() for field in fields(kind)),
    *((part, "") for part in ("driver", *PARTS)),  # the whole of it
]
FACTS.remove(("tables", "name"))  # given by the user

BARE = table_facts(
    ("body", "text"), has_primary_key=False, logs_full_rows=False, has_pending_alter=True
)
NOTHING_KNOWN = Unanswered("the table does not exist", was_asked=False)
NONE_KNOWN = dict.fromkeys(("has_primary_key", "logs_full_rows", "has_pending_alter"), NOTHING_KNOWN)
MISSING = table_facts(kind="", **NONE_KNOWN)
SET_UPS = {
    "all is well": replace(SOUND, tables=(table_facts(),)),
    "another user, and full row logging is off": replace(SOUND, user="app", tables=(BARE,)),
    "a table is missing": replace(SOUND, tables=(MISSING, table_facts())),
    "a secondary without full row logging": replace(
        with_server(ha_role=HaRole(2, "primary"), log_space=LOG_SPACE), tables=(BARE,)
    ),
    "GBase 8s without logging": replace(
        with_server(database_logging=DatabaseLogging(is_logged=False), has_cdc_database=False),
        dialect=GBASE_8S,
        db_locale="en_us.8859-1",
    ),
}

# What a sentence may not say while a fact is unanswered: it would be true of some values only.
CLAIMS = {
    "name": "is ids1",
    "version": r"Dynamic Server|release \d",
    "clock": "at the average|at the highest|fill time",
    "has_cdc_database": "(no|the) database syscdcv1|database syscdcv1 (is|does)",
    "database_logging": "(un)?buffered|ANSI|not logged|database (?!syscdcv1).* does not exist",
    "database_locale": "en_US|read as",
    "cdc_locale": "syscdcv1 has locale",
    "log_space": "oldest|current one|overwritten|[KMG]iB",
    "parameters": r"\bis \d|rolled back|did not report DYN",
    "ha_role": r"is the primary|secondary of|not part of|secondary cannot|switches it on for good\.",
    "api_version": r"API has version",
    "user_type": "DBA of syscdcv1 and|no DBA|is a DBA",
    "runs_routines": "may call",
    "sessions": "no capture session|session 7",
    "found": "table .* (is there|does not exist|is an? )|no such table to|has .*columns|is captured",
    "has_primary_key": "has (a|no) primary key",
    "has_pending_alter": "rows (of one|in a) layout",
    "logs_full_rows": "logs full rows|does not log",
}
# Nowhere: how an unknown fact looks in Python, and words that stand in for one.
NEVER = re.compile(r"Unanswered|\bNone\b|<object|does not tell|cannot be told|  |\.\.")


def without(set_up: SetUp, part: str, fact: str) -> SetUp:
    """Return a set-up of which a fact, or a whole part, is not known."""
    known = getattr(set_up, part)
    if not fact:
        return replace(set_up, **{part: NO_ANSWER})
    if isinstance(known, Unanswered):
        return set_up
    if part == "tables":
        changes = {fact: NO_ANSWER}
        if fact == "found":  # then nothing else of the table is asked
            none = why_no_table(NO_ANSWER)
            changes |= dict.fromkeys(NONE_KNOWN, none)
        return replace(set_up, tables=tuple(replace(table, **changes) for table in known))
    return replace(set_up, **{part: replace(known, **{fact: NO_ANSWER})})


def subsets() -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield the facts to leave unanswered: each, each two, and all."""
    for size in (1, 2):
        yield from combinations(FACTS, size)
    yield tuple(fact for fact in FACTS if fact[1])
    yield tuple(FACTS)


def false_claims(finding: Finding, unanswered: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """Yield what a finding says that nobody can know."""
    # the check's own name may be any word
    said = finding.found if finding.state is State.NOT_CHECKED else finding.sentence
    if found := NEVER.search(said):
        yield found[0]
    if REASON in said and not re.fullmatch(
        rf"(table \S+ )?(could not be checked: )?{re.escape(REASON)}", said
    ):
        yield REASON
    for part, fact in unanswered:
        for name in [fact] if fact else [name for of, name in FACTS if of == part and name]:
            if found := re.search(CLAIMS[name], said):
                yield f"{name}: {found[0]}"


@pytest.mark.parametrize("set_up", SET_UPS.values(), ids=SET_UPS.keys())
def test_no_sentence_says_what_the_server_did_not(set_up: SetUp) -> None:
    for unanswered in subsets():
        spoilt = set_up
        for part, fact in unanswered:
            spoilt = without(spoilt, part, fact)
        for finding in examine(spoilt):
            assert not list(false_claims(finding, unanswered)), (unanswered, finding)


def test_the_claims_are_those_of_known_facts() -> None:
    """Each pattern matches a sentence of a set-up that knows the fact, so that none is out of date."""
    said = [finding.sentence for set_up in SET_UPS.values() for finding in examine(set_up)]
    assert [
        name for name, claim in CLAIMS.items() if not any(re.search(claim, it) for it in said)
    ] == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "connected to db:9088 as informix; the server is ids1, IBM Informix Dynamic Server"),
        ({"name": NO_ANSWER}, "; it did not report its name."),
        ({"version": NO_ANSWER}, "; the server is ids1; it did not report its version."),
        (
            {"name": NO_ANSWER, "version": NO_ANSWER},
            "connected to db:9088 as informix; the server did not report its name and version.",
        ),
    ],
)
def test_a_connection_says_what_the_server_reported(
    changes: dict[str, Unanswered], sentence: str
) -> None:
    (found,) = [f.found for f in examine(with_server(**changes)) if f.check == "connection"]
    assert sentence in found
