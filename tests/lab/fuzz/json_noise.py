"""Noise for doors that take JSON: one value is replaced by another one, and the rest stays sound.

Rule: values in, values out; what hypothesis and atheris choose are numbers, so that both shrink.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

Place = tuple[Any, Any]  # an object or list, and a key or index in it
_OTHERS: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 1 << 31, 1 << 63, -(1 << 63), 10**400, 1e308, -0.0),
    *(float("nan"), float("inf"), "", "a", "x" * 3000, "\ud800", "\0", "../../x", "/etc/passwd"),
    *("-1", "1e9", "9" * 25, "\u0661", "1-" + "9" * 19, "\n", ".arrow", "0123456789abcdef"),
    *([], [[]], [None] * 50, [1, 2, 3], [1, 2], ["a"], {}, {"": ""}),
)


def with_another_value(data: bytes, at: int, which: int) -> bytes:
    """Return JSON, or a line of it, with another value in one place; other bytes as they are."""
    lines = data.split(b"\n")
    number = at % len(lines)
    with contextlib.suppress(ValueError, RecursionError):
        known = [json.loads(lines[number])]
        places = list(_places(known))
        within, key = places[at // len(lines) % len(places)]
        within[key] = _OTHERS[which % len(_OTHERS)]
        lines[number] = json.dumps(known[0]).encode()
    return b"\n".join(lines)


def _places(within: Any) -> Iterator[Place]:
    for key in within if isinstance(within, dict) else range(len(within)):
        yield within, key
        if isinstance(within[key], dict | list):
            yield from _places(within[key])
