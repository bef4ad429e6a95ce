"""Known mutants: small defects, each of which some test must notice.

Rule: a mutant changes what a user could meet, and `mutants.toml` says what that is. The table moves
with the code (`test_mutants.py`); `python -m mutants` applies it and names the test that kills each.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE_ROOTS = ("connector", "capture_client", "checkpoints")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One defect: `text`, which stands once in `file`, becomes `replacement`.

    Attributes:
        harm: what goes wrong for a user.
        killers: test files, or tests, that fail with it; paths from the root of the tree.
        past: where the defect that it brings back was mended; empty for a new one.
        only_thorough: whether the killers notice it with HYPOTHESIS_PROFILE=thorough only.
    """

    name: str
    file: str
    text: str
    replacement: str
    harm: str
    killers: tuple[str, ...]
    past: str = ""
    only_thorough: bool = False

    def applied_to(self, source: str) -> str:
        """Return a source with the defect."""
        return source.replace(self.text, self.replacement, 1)


def known_mutants() -> list[Mutant]:
    """Return the mutants of the table."""
    table = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text(encoding="utf-8"))
    return [Mutant(**{**each, "killers": tuple(each["killers"])}) for each in table["mutant"]]
