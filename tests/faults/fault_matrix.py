"""Write the tables of docs/evidence/fault-matrix.md from the `fault` markers of the tests.

Rule: read from the source, not by running it, so that the page is the same on every machine. A marker's
arguments are literals, or names of literals of the same module.

    python -m faults.fault_matrix        (in tests/)
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "evidence" / "fault-matrix.md"
BEGIN = "<!-- made by tests/faults/fault_matrix.py: begin -->"
END = "<!-- made by tests/faults/fault_matrix.py: end -->"
_ARGUMENTS = ("fault", "outcome", "seeds")
# Folders with a heading of their own, in the order of the page; others follow under their own name.
_HEADINGS = {
    "faults": "The server and the network",
    "crashes": "Our own processes",
    "simulation": "Seeded schedules of all of it, without Spark",
    "connector": "Loss, limits and liveness",
    "checkpoints": "The spool",
    "connector/commands": "The command line",
    "lab": "Noise",
}
_NOT_YET = "**not yet**: "


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the matrix."""

    fault: str
    outcome: str
    test: str
    seeds: str

    def __str__(self) -> str:
        cells = (self.fault, self.outcome, f"`{self.test}`", self.seeds)
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def lines_of(source: str, test_file: str) -> list[Line]:
    """Return the lines that a test module's markers make, in the order of its tests.

    Raises:
        ValueError: a marker lacks `fault` or `outcome`, or an argument is no literal.
    """
    if ".fault(" not in source:
        return []
    module = ast.parse(source, test_file)
    constants = dict(_constants(module))
    tests = (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef))
    in_order = sorted(tests, key=lambda test: test.lineno)
    return [
        _line(mark, test, test_file, constants)
        for test in in_order
        for mark in test.decorator_list
        if isinstance(mark, ast.Call) and _name(mark) == "fault"
    ]


def tables(folder: Path = TESTS) -> str:
    """Return all tables, one per folder of tests that has markers."""
    by_folder: dict[str, list[Line]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        place = path.relative_to(folder)
        found = lines_of(path.read_text(encoding="utf-8"), place.as_posix())
        room = place.parent.as_posix()
        by_folder.setdefault(room if room in _HEADINGS else place.parts[0], []).extend(found)
    known = [name for name in _HEADINGS if by_folder.get(name)]
    others = [name for name in sorted(by_folder) if name not in _HEADINGS and by_folder[name]]
    return "\n\n".join(_table(_HEADINGS.get(name, name), by_folder[name]) for name in known + others)


def page_with(made: str, page: str) -> str:
    """Return the page with these tables between its two marks.

    Raises:
        ValueError: the page lacks a mark.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE} lacks the line {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


def _table(heading: str, lines: list[Line]) -> str:
    head = "| fault | expected outcome | test | tried |\n|---|---|---|---|"
    return "\n".join([f"### {heading}\n", head, *map(str, lines)])


def _line(mark: ast.Call, test: ast.FunctionDef, test_file: str, constants: dict[str, object]) -> Line:
    given = {keyword.arg: _value(keyword.value, constants) for keyword in mark.keywords}
    if not {"fault", "outcome"} <= given.keys() <= set(_ARGUMENTS) or mark.args:
        raise ValueError(f"{test_file}, {test.name}: the marker takes {', '.join(_ARGUMENTS)}")
    pending = any(isinstance(each, ast.Call) and _name(each) == "xfail" for each in test.decorator_list)
    outcome = (_NOT_YET if pending else "") + given["outcome"]
    return Line(given["fault"], outcome, f"{test_file}::{test.name}", given.get("seeds", ""))


def _name(mark: ast.Call) -> str:
    return mark.func.attr if isinstance(mark.func, ast.Attribute) else ""


def _value(node: ast.expr, constants: dict[str, object]) -> str:
    if isinstance(node, ast.Name) and node.id in constants:
        return str(constants[node.id])
    return str(ast.literal_eval(node))


def _constants(module: ast.Module) -> Iterator[tuple[str, object]]:
    """Yield what names of the module stand for, where that is a literal."""
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                yield node.targets[0].id, ast.literal_eval(node.value)
            except ValueError:
                continue  # not a literal, and so nothing that a marker may name


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(page_with(tables(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE} is up to date\n")


if __name__ == "__main__":
    main()
