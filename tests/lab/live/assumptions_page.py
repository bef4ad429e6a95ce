"""docs/assumptions.md as tests see it: numbered rows, each with an assumption and its tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[3] / "docs" / "assumptions.md"
_ROW = re.compile(r"^\| (\d+) \| (.*) \| (.*) \| (.*) \|$", re.MULTILINE)


class Assumption(NamedTuple):
    """One row of the page."""

    number: int
    text: str
    source: str
    tests: tuple[str, ...]
    is_proven: bool  # by a proof of `informix-cdc prove`


def parse_page(page: str) -> list[Assumption]:
    """Return the rows of the page, in its order."""
    return [
        Assumption(
            int(number), text, source, tuple(re.findall(r"`(test_\w+)`", tests)), "`prove`" in tests
        )
        for number, text, source, tests in _ROW.findall(page)
    ]


def assumptions() -> list[Assumption]:
    """Return the rows of docs/assumptions.md."""
    return parse_page(PAGE.read_text(encoding="utf-8"))


@contextmanager
def explained(numbers: Sequence[int]) -> Iterator[None]:
    """Let a failure say which assumptions it speaks against; a skip is none."""
    try:
        yield
    except Exception as reason:
        raise disproof(numbers, reason) from reason


def disproof(numbers: Sequence[int], reason: BaseException) -> AssertionError:
    """Return the failure of a test that rests on assumptions; it names numbers and words."""
    named = [f"assumption {row.number}: {row.text}" for row in assumptions() if row.number in numbers]
    lines = "\n".join(named)
    return AssertionError(
        f"{type(reason).__name__}: {reason}\nThis speaks against docs/assumptions.md:\n{lines}"
    )
