"""The table of figures on docs/evidence/performance.md is that of one run of `make bench`.

Rule: nobody writes a figure by hand. A run leaves its table in build/bench.md; `make figures` puts it
between the marks of the page, and `make docs` draws the pictures from there.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
LAST_RUN = ROOT / "build" / "bench.md"
PAGE = ROOT / "docs" / "evidence" / "performance.md"
BEGIN, END = (
    "<!-- figures: made by `make bench`, put here by `make figures` -->",
    "<!-- end of figures -->",
)


def keep(table: str) -> None:
    """Leave the table of a run where `make figures` finds it."""
    LAST_RUN.parent.mkdir(exist_ok=True)
    LAST_RUN.write_text(table + "\n", encoding="utf-8")


def with_figures(page: str, table: str) -> str:
    """Return a page with another table between its marks.

    Raises:
        ValueError: the marks are not there, once each and in their order.
    """
    before, begun, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not begun or not ended or BEGIN in rest or END in after:
        raise ValueError(f"the page does not hold {BEGIN} and {END} once each")
    return f"{before}{BEGIN}\n{_narrow(table.strip())}\n{END}{after}"


def _narrow(table: str) -> str:
    """Return a table without what lines it up on a terminal."""
    return re.sub("-{3,}", "---", re.sub(" {2,}", " ", table))


if __name__ == "__main__":
    made = with_figures(PAGE.read_text(encoding="utf-8"), LAST_RUN.read_text(encoding="utf-8"))
    PAGE.write_text(made, encoding="utf-8")
