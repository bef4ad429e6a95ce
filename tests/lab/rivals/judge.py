"""Compare what a consumer wrote with what is due: lost, doubled, extra, out of order.

Rule: keys of changes in, figures out; whose they are plays no part.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Verdict:
    """How a consumer's account differs from the workload's; all zeros: exactly once, in order."""

    due: int
    got: int
    lost: int
    lost_truncates: int  # of the lost
    doubled: int
    extra: int
    out_of_order: int

    @property
    def is_exact(self) -> bool:
        return self.due == self.got and not (self.lost or self.extra or self.out_of_order)


def judged(due: Sequence[str], got: Sequence[str]) -> Verdict:
    """Compare; the first time a change comes counts for the order."""
    wanted, came = Counter(due), Counter(got)
    return Verdict(
        due=len(due),
        got=len(got),
        lost=(wanted - came).total(),
        lost_truncates=sum(n for key, n in (wanted - came).items() if key.startswith("t ")),
        doubled=sum(n - wanted[key] for key, n in came.items() if wanted[key] and n > wanted[key]),
        extra=sum(n for key, n in came.items() if not wanted[key]),
        out_of_order=_out_of_order(due, got),
    )


def _out_of_order(due: Sequence[str], got: Iterable[str]) -> int:
    """Count changes that come after one that is due later; truncates have no key of their own."""
    places = {key: place for place, key in enumerate(due)}
    highest, count, seen = -1, 0, set()
    for key in got:
        if key in seen or key.startswith("t ") or key not in places:
            continue
        seen.add(key)
        count += places[key] < highest
        highest = max(highest, places[key])
    return count


def keys_of_debezium(lines: Iterable[str]) -> list[str]:
    """Return the keys of the events that `Rival.java` has written; a torn last line is left out."""
    keys = []
    for line in lines:
        if line.endswith("\n"):
            value = json.loads(line.partition("\t")[2])
            payload = value.get("payload", value)
            if payload.get("op") in _OF_DEBEZIUM:  # other events are of the schema or a transaction
                keys.append(_OF_DEBEZIUM[payload["op"]](payload))
    return keys


_OF_DEBEZIUM: dict[str, Any] = {
    "c": lambda event: f"c {event['after']['stamp']}",
    "r": lambda event: f"c {event['after']['stamp']}",
    "u": lambda event: f"u {event['before']['stamp']} {event['after']['stamp']}",
    "d": lambda event: f"d {event['before']['stamp']}",
    "t": lambda event: f"t {event['source']['table']}",
}


def keys_of_ours(folder: Path) -> list[str]:
    """Return the keys of the batches that `our_stream.py` has written, by their numbers."""
    keys: list[str] = []
    for file in sorted(folder.glob("*.json"), key=lambda path: int(path.stem)):
        before: dict[str, Any] = {}
        for row in json.loads(file.read_text()):
            kind = row["kind"]
            if kind == "update_preimage":
                before = row
            elif kind == "update_postimage":
                keys.append(f"u {before['stamp']} {row['stamp']}")
            else:
                keys.append(f"{_OF_OURS[kind]} {row['table'] if kind == 'truncate' else row['stamp']}")
    return keys


_OF_OURS = {"insert": "c", "delete": "d", "truncate": "t"}
