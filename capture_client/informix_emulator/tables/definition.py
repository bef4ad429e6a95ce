"""The parts of a CREATE TABLE besides names and types: defaults and foreign keys.

They are kept as parsed. The SQL engine enforces them; the catalogue shows them. Source: Guide to SQL:
Reference, "sysreferences".
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

LITERAL = "L"


@dataclass(frozen=True, slots=True)
class Default:
    """What a column gets that an INSERT does not name."""

    words: str  # as they are read again
    kind: str = LITERAL  # as `sysdefaults.type` of a server has it
    literal: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """A referential constraint: what columns here must be found there."""

    name: str
    columns: tuple[str, ...]
    other: str  # database:owner.table
    other_columns: tuple[str, ...]


@dataclass(slots=True)
class Definition:
    """What a CREATE TABLE says beyond the columns."""

    defaults: dict[str, Default] = field(default_factory=dict)
    references: list[Reference] = field(default_factory=list)

    def copy(self) -> Definition:
        """Return one that can be changed without this one."""
        return Definition(dict(self.defaults), list(self.references))

    def left_with(self, columns: Set[str], names: Mapping[str, str]) -> Definition:
        """Return what holds of a table with these columns; `names` maps previous names to new ones."""
        fresh = self.copy()
        defaults = {names.get(name, name): default for name, default in self.defaults.items()}
        fresh.defaults = {name: default for name, default in defaults.items() if name in columns}
        references = [replace(r, columns=renamed(r.columns, names)) for r in self.references]
        fresh.references = [r for r in references if {*r.columns} <= columns]
        return fresh


def renamed(columns: tuple[str, ...], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return columns under their new names."""
    return tuple(names.get(name, name) for name in columns)
