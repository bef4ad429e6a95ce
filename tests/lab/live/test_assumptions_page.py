"""docs/assumptions.md and the tests name each other; and what a failed one says."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from informix_cdc.proving.all_proofs import PROOFS
from informix_cdc.proving.type_cases import TYPE_CASES
from lab.live.assumptions_page import PAGE, assumptions, disproof, explained, parse_page
from session_contract import test_types

TESTS = Path(__file__).parents[2]
OF_TYPES = test_types.test_what_is_captured_of_each_type_is_what_select_prints.__name__


def numbers_of(function: ast.FunctionDef) -> Iterator[int]:
    """Yield what @pytest.mark.assumption(...) says of a test."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("mark.assumption"):
            yield from (argument.value for argument in decorator.args)  # type: ignore[attr-defined]


def marked_tests() -> set[tuple[int, str]]:
    found = {(case.assumption, OF_TYPES) for case in TYPE_CASES if case.assumption}
    texts = [path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")]
    for text in texts:
        if "mark.assumption" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                found |= {(number, node.name) for number in numbers_of(node)}
    return found


def test_the_page_names_exactly_the_tests_that_rest_on_each_assumption() -> None:
    named = {(row.number, test) for row in assumptions() for test in row.tests}
    assert named == marked_tests()


def test_the_page_names_exactly_the_rows_that_a_proof_tries() -> None:
    proven = {number for proof in PROOFS for number in proof.assumptions}
    assert {row.number for row in assumptions() if row.is_proven} == proven


def test_every_assumption_has_a_number_of_its_own_a_source_and_a_test() -> None:
    rows = assumptions()
    assert len(rows) == PAGE.read_text(encoding="utf-8").count("\n| ") - 1  # its head is no row
    assert [number for number, times in Counter(row.number for row in rows).items() if times > 1] == []
    assert [row.number for row in rows if not (row.source and (row.tests or row.is_proven))] == []


def test_a_row_is_read_with_all_its_tests() -> None:
    (row,) = parse_page("| 7 | It rains | a guide \\| x | `prove`, `test_a`, and `test_b` |\n")
    assert row[:2] == (7, "It rains")
    assert row[3:] == (("test_a", "test_b"), True)


def test_a_failure_of_a_marked_test_names_its_row_and_a_skip_does_not() -> None:
    with pytest.raises(AssertionError, match="assumption 3: Activation at"), explained((3,)):
        raise LookupError("nothing came")
    with pytest.raises(pytest.skip.Exception, match=r"^no server$"), explained((3,)):
        pytest.skip("no server")


def test_a_failure_says_which_assumptions_it_speaks_against() -> None:
    said = str(disproof((3, 9), AssertionError("2 != 1")))
    assert said.startswith("AssertionError: 2 != 1\nThis speaks against docs/assumptions.md:\n")
    assert "assumption 3: Activation at the number of a BEGINTX" in said
    assert "assumption 9: `max_recs` may be 1 to 256" in said
    assert "assumption 4" not in said
