"""Everything that is wrong with the options of a query, gathered so that one error tells all of it.

Rule: in the order in which the options are declared; a name that is no option comes first.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping, Sequence

from informix_capture_client.errors import BadOption

# What sources of changes call the same thing elsewhere: Spark's Kafka source, Debezium, JDBC.
_ELSEWHERE = {
    "snapshot.mode": "initialSnapshot",
    "subscribe": "table",
    "dbtable": "table",
    "table.include.list": "table",
    "column.include.list": "columns",
    "startingoffsets": "startingPosition",
    "startingversion": "startingPosition",
    "maxoffsetspertrigger": "maxRowsPerTrigger",
    "minpartitionnum": "minPartitions",
    "username": "user",
    "hostname": "host",
}


class OptionErrors:
    """What is wrong, as it is found.

    Args:
        names: of all options, in the order in which they are declared.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._found: dict[str, tuple[int, BadOption]] = {}  # by text: two checks may say the same

    @contextlib.contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Note what is refused meanwhile; `name` is the option that it is about."""
        try:
            yield
        except BadOption as reason:
            place = self._names.index(name) if name in self._names else -1
            self._found.setdefault(reason.message, (place, reason))

    def has(self, name: str) -> bool:
        """Tell whether something is wrong with an option."""
        return any(self._names[place] == name for place, _ in self._found.values() if place >= 0)

    def raise_all(self) -> None:
        """Raise what was noted.

        Raises:
            BadOption: the one problem as it is, or all of them in one.
        """
        found = [reason for _, reason in sorted(self._found.values(), key=lambda each: each[0])]
        if len(found) == 1:
            raise found[0]
        if found:
            told = (f"({n}) {each.message} {each.remedy}".rstrip() for n, each in enumerate(found, 1))
            raise BadOption(f"{len(found)} things are wrong with the options: {' '.join(told)}")


def refuse_unknown(given: Mapping[str, str], problems: OptionErrors, names: Sequence[str]) -> None:
    """Note each name that is no option, with the one that was meant where that is clear."""
    by_lower_case = {name.lower(): name for name in names}
    for key in given:
        if key not in by_lower_case:
            with problems.of(key):
                raise BadOption(
                    f"option {key!r} is not known.", _instead_of(key, by_lower_case), option=key
                )


def _instead_of(key: str, names: Mapping[str, str]) -> str:
    if key in _ELSEWHERE:
        return f"Here it is {_ELSEWHERE[key]!r}."
    near = difflib.get_close_matches(key, names, n=1)  # at least 0.6 alike, or it misleads
    if near:
        return f"Did you mean {names[near[0]]!r}?"
    if key.startswith("snapshot"):
        return "Here it is 'initialSnapshot': all, or a list of tables (docs/pipelines.md)."
    return f"There are: {', '.join(names.values())}."
