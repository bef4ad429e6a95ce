"""The settings of a shared capture, as in its TOML file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from informix_capture_client.errors import BadOption
from informix_cdc.options import (
    OF_ANY_READER,
    OF_ROWS,
    SourceOptions,
    size,
    with_mirror_options,
)

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_DURATION = re.compile(r"(\d{1,9}) ?(second|minute|hour|day)s?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSettings:
    """The settings of a shared capture.

    Attributes:
        source: options of the format, with spoolPath.
        retention_seconds: the maximum age of rows that a reader has not read; 0: no limit.
        retention_bytes: the maximum size of all stored rows; 0: no limit.
        listen: host and port for readers on other hosts; None: none.
        readers_may_resync: whether a reader on another host that has lost rows may have all tables read
            again; by default that of a mirror.
    """

    source: SourceOptions
    retention_seconds: float = 7 * 86_400
    retention_bytes: int = 0
    listen: tuple[str, int] | None = None
    readers_may_resync: bool = False

    @classmethod
    def of(cls, given: Mapping[str, object], source: Mapping[str, str]) -> CaptureSettings:
        """Return the settings with the names and values of a file.

        Args:
            given: the settings outside of [source].
            source: options of the format.

        Raises:
            BadOption: lists all problems.
        """
        problems = [_unknown(name) for name in given.keys() - _SETTINGS.keys() - {_MIRROR}]
        if given.get(_MIRROR, False) not in (True, False):
            problems.append(f"{_MIRROR} must be true or false.")
        values: dict[str, Any] = {"readers_may_resync": given.get(_MIRROR, False) is True}
        for name, (field, read) in _SETTINGS.items():
            if name in given:
                try:
                    values[field] = read(str(given[name]))
                except ValueError as reason:
                    problems.append(f"{name} {reason}.")
        problems += [
            f"{name} is an option of each reader: set it in the query, not in [source]."
            for name in OF_ROWS
            if name.lower() in {each.lower() for each in source}
        ]
        try:
            known = with_mirror_options(source) if given.get(_MIRROR) else source
            options = SourceOptions.parse({**known, **OF_ANY_READER})
            problems += _problems_of(options, values)
        except BadOption as reason:
            problems.append(f"{reason.message} {reason.remedy}".strip())
        if problems:
            raise BadOption(" ".join(problems), "Correct the file; nothing was captured.")
        return cls(source=options, **values)


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, [*_SETTINGS, _MIRROR, "source"], 1)
    return f"{name} is not a setting{f'; did you mean {near[0]}?' if near else '.'}"


def _problems_of(options: SourceOptions, values: Mapping[str, Any]) -> list[str]:
    """Return what a shared capture cannot do."""
    found = []
    if options.shared.capture_at:
        found.append("captureAt is an option of readers: a capture reads the server.")
    elif not options.spool.path:
        found.append("spoolPath is missing: it is the folder that readers name in captureAt.")
    least = values.get("retention_bytes", 0)
    if least and least > options.spool.max_bytes:
        found.append(
            f"retentionBytes is {int(least)}, more than maxSpoolBytes ({options.spool.max_bytes}), at"
            " which reading pauses. Raise maxSpoolBytes in [source]."
        )
    return found


def _seconds(text: str) -> float:
    """Parse a duration.

    >>> _seconds("7 days")
    604800.0
    """
    found = _DURATION.fullmatch(text.strip().lower())
    if text.strip() == "0":
        return 0.0
    if found is None:
        raise ValueError("must be a duration such as 7 days, 36 hours or 0 for no limit")
    return float(int(found[1]) * _UNITS[found[2]])


def _host_and_port(text: str) -> tuple[str, int]:
    """Parse an address to listen on.

    >>> _host_and_port("0.0.0.0:8815")
    ('0.0.0.0', 8815)
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 <= int(port) < 1 << 16:
        raise ValueError("must be an address and a port, such as 0.0.0.0:8815")
    return host.strip("[]"), int(port)


def _flag(text: str) -> bool:
    """Parse true or false, as TOML has it."""
    if text not in ("True", "False"):
        raise ValueError("must be true or false")
    return text == "True"


_MIRROR = "mirror"  # the options of a stream that `informix-cdc mirror` reads
_SETTINGS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "retention": ("retention_seconds", _seconds),
    "retentionBytes": ("retention_bytes", size(0)),
    "listen": ("listen", _host_and_port),
    "readersMayResync": ("readers_may_resync", _flag),
}
assert {field for field, _ in _SETTINGS.values()} < {each.name for each in fields(CaptureSettings)}
