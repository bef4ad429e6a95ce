"""What the doctor says of contents of large objects that are asked for."""

from __future__ import annotations

from typing import Any

import pytest

from informix_capture_client.findings import Finding, State, Unanswered
from informix_cdc.doctor.large_objects import OBJECTS, ObjectColumn, check_objects

FILES = "stores:informix.files"
REFUSED = Unanswered("no right", "grant it")


def found(**facts: Any) -> Finding:
    column = ObjectColumn(**{"table": FILES, "name": "picture", "most_bytes": 1000, **facts})
    (one,) = check_objects((column,))
    assert (one.check, one.table) == (OBJECTS, FILES)
    assert "column picture" in one.found
    return one


def test_where_no_contents_are_read_nothing_is_said() -> None:
    assert list(check_objects(None)) == []


@pytest.mark.parametrize(
    ("facts", "state", "says"),
    [
        ({"size": 0}, State.OK, "of 0 bytes can be read"),
        ({"size": 1000}, State.OK, "of 1,000 bytes can be read"),
        ({"size": 1001}, State.WARNING, "more than 1,000"),
        ({"size": None}, State.OK, "none was opened"),
        ({"size": REFUSED}, State.FAILURE, "no right"),
        ({"refusal": REFUSED, "is_selected": True}, State.FAILURE, "may not read the table: no right"),
        ({"refusal": REFUSED}, State.WARNING, "no object could be opened: no right"),
    ],
)
def test_each_fact_has_its_finding(facts: dict[str, Any], state: State, says: str) -> None:
    one = found(**facts)
    assert (one.state, bool(one.remedy)) == (state, state is not State.OK)
    assert says in one.found


def test_a_missing_right_has_the_grant_as_its_remedy() -> None:
    assert "GRANT SELECT ON informix.files" in found(refusal=REFUSED).remedy


def test_tables_without_large_objects_are_ok() -> None:
    (one,) = check_objects(())
    assert (one.state, one.table) == (State.OK, "")


def test_what_a_start_would_be_refused_for_is_a_failure() -> None:
    (one,) = check_objects(Unanswered("no key", "name one"))
    assert (one.state, one.found, one.remedy) == (State.FAILURE, "no key", "name one")


def test_without_a_connection_nothing_is_checked() -> None:
    (one,) = check_objects(Unanswered("there is no connection", was_asked=False))
    assert one.state is State.NOT_CHECKED
