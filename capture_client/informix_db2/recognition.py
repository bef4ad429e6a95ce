"""Recognise a format: each one is tried with each of its variants, and the fitting ones are reported.

Rule: the decoders decide, with bad bytes as rows; a way fits that makes changes and leaves little.
No row is printed, only counts and names.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from informix_capture_client.errors import BadOption
from informix_db2.code_pages import code_page
from informix_db2.decoding import Decoder
from informix_db2.entry_points import (
    log_records_decoder,
    logical_log_decoder,
    q_messages_decoder,
)
from informix_db2.log_records import PREFIXES, LogSettings, orders_that_fit
from informix_db2.logical_log import FRAMINGS, LogicalLogSettings
from informix_db2.logical_log.images import READINGS
from informix_db2.q_messages import QMessageSettings

_ENCODINGS = ("utf-8", "cp037")
_SHOWN_TABLES = 10
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NOTHING = "none of the three formats: no change was found with any settings"
_HEADER_ONLY = (
    "starts like delimited messages, but no change was found: set encoding and delimiters to those"
    " of the publishing queue map"
)


class _Found(NamedTuple):
    """A way to read bytes, and what it makes of them.

    `has_header` where they begin as this format does, whatever can be read.
    """

    way: str
    changes: Counter[str]
    tables: Counter[str]
    bad_bytes: int
    reasons: Counter[str]
    has_header: bool = False

    @property
    def rank(self) -> tuple[int, int]:
        """Fewest bad bytes first, then most changes."""
        return (self.bad_bytes, -self.changes.total())


def recognised(data: bytes) -> list[str]:
    """Return lines about bytes: the ways that fit best, and what they make of them."""
    ways = list(_ways(data))
    found = [each for each in ways if each.changes]
    if not found:
        return _without_changes([each for each in ways if each.has_header])
    best = min(each.rank for each in found)
    lines: list[str] = []
    for each in found:
        if each.rank == best:
            lines += _described(each)
    return lines


def _without_changes(begun: list[_Found]) -> list[str]:
    """Return lines about bytes that begin as messages do, if they do: the way that says most of why."""
    if not begun:
        return [_NOTHING]
    return [_HEADER_ONLY, *_described(max(begun, key=lambda each: each.reasons.total()))]


def _described(found: _Found) -> Iterator[str]:
    yield found.way
    if found.changes:
        kinds = sorted(found.changes.items())
        yield "  changes: " + ", ".join(f"{count} {kind}" for kind, count in kinds)
        tables = found.tables.most_common(_SHOWN_TABLES)
        yield "  tables: " + ", ".join(f"{name} ({count})" for name, count in tables)
    yield f"  bad bytes: {found.bad_bytes}"
    yield from (f"    {count} times: {reason}" for reason, count in found.reasons.most_common(5))


def _ways(data: bytes) -> Iterator[_Found]:
    yield from _as_messages(data)
    yield from _as_log_records(data)
    yield from _as_logical_log(data)


def _as_messages(data: bytes) -> Iterator[_Found]:
    for encoding in _ENCODINGS:
        page = code_page(encoding)
        mark = _BYTE_ORDER_MARK if page.is_utf8 and data.startswith(_BYTE_ORDER_MARK) else b""
        digits, ibm = page.encode("0123456789"), re.escape(page.encode("IBM"))
        begins = re.compile(b"[" + digits + b"]{1,9}(.)(.)" + ibm, re.DOTALL).match(data, len(mark))
        if begins is None:
            continue
        column, string = begins.groups()
        again = b"([^" + digits + b"])[" + digits + b"]{1,9}" + re.escape(column + string) + ibm
        second = re.compile(again, re.DOTALL).search(data, begins.end())
        way = f"delimited messages: {encoding}, column delimiter {_hex(column)}"
        way += f", string delimiter {_hex(string)}"
        if mark:
            way += ", a byte order mark in front: remove it"
        yield _Found(way, Counter(), Counter(), len(data), Counter(), True)
        # A file of one message ends with the delimiter.
        for end in dict.fromkeys([second[1] if second else data[-1:], page.encode("\n")]):
            if settings := _message_settings(encoding, column, end, string):
                decoder = q_messages_decoder(None, settings, bad="row")
                found = _tried(f"{way}, record delimiter {_hex(end)}", decoder, data)
                yield found._replace(has_header=True)


def _hex(byte: bytes) -> str:
    return f"0x{byte.hex()}"


def _message_settings(
    encoding: str, column: bytes, end: bytes, string: bytes
) -> QMessageSettings | None:
    """Return settings with these delimiters; None where one of them can be none."""
    for point in ".!?;":  # the decimal character changes nothing here, and must differ
        with contextlib.suppress(BadOption):
            return QMessageSettings(_hex(column), _hex(end), _hex(string), point, encoding)
    return None


def _as_log_records(data: bytes) -> Iterator[_Found]:
    for container in PREFIXES:
        if container == "message":
            continue
        for order in orders_that_fit(data, 0, len(data), container):
            settings = LogSettings(byte_order=order, container=container)
            way = f"log records of Db2: byte order {order}, container {container}"
            yield _tried(way, log_records_decoder(None, settings, bad="row"), data)


def _as_logical_log(data: bytes) -> Iterator[_Found]:
    for framing in FRAMINGS:
        for reading in READINGS:
            settings = LogicalLogSettings(framing=framing, image_length=reading, rolled_back="rows")
            way = f"logical log of Log Master: framing {framing}, lengths of images {reading}"
            yield _tried(way, logical_log_decoder(None, settings, bad="row"), data)


def _tried(way: str, decoder: Decoder, data: bytes) -> _Found:
    changes, tables, reasons, bad = Counter[str](), Counter[str](), Counter[str](), 0
    for rows in (*decoder.rows([data], ["file"]), *decoder.finish()):
        is_good = np.asarray(rows.batch.column("_error").is_null())
        changes.update(name for name in rows.batch.column("_change_type").to_pylist() if name)
        tables.update(name for name in rows.batch.column("_table").to_pylist() if name)
        for place in np.flatnonzero(~is_good).tolist():
            reasons[rows.batch.column("_error")[place].as_py()] += 1
            bad += len(rows.batch.column("_bad")[place].as_py())
    return _Found(way, changes, tables, bad, reasons)
