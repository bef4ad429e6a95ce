"""What the log has told: the facts of one kind of event, taken from its own lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

_PAIR = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|[^\s"]+)(?: |$)')


def parsed(line: str) -> dict[str, str]:
    """Read a logfmt line back; anything that is not key=value is an error."""
    facts, at = {}, 0
    while at < len(line):
        found = _PAIR.match(line, at)
        assert found, f"{line[at:]!r} is not key=value"
        facts[found[1]] = json.loads(found[2]) if found[2].startswith('"') else found[2]
        at = found.end()
    return facts


def told(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, str]]:
    """Return the facts of each line about an event, in order."""
    return [facts for facts in _lines(caplog) if facts["event"] == event]


def _lines(caplog: pytest.LogCaptureFixture) -> Iterator[dict[str, str]]:
    for record in list(caplog.records):
        if record.name.startswith("informix_cdc"):
            yield parsed(record.getMessage())
