"""What of a logical log's control file changes how its data file is read.

Rule: records are known by their first four characters; those that say nothing about bytes of the data
file are passed over.

    XHDF  4 name(18)  22 type(4)  26 subtype(1)  27 length(5)  32 position(5)      a field of the header
    DLDS  59 EXPANDVAR                                   whether strings have all the room declared

(BMC, "Logical log control file", Log Master for DB2 12.1.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from informix_capture_client.errors import BadOption
from informix_db2.code_pages import CodePage
from informix_db2.logical_log.header import LAYOUT, Field
from informix_db2.refused_bytes import BadDb2Value

_REMEDY = "Give the control file that was written with the data file, in the same framing."


@dataclass(frozen=True)
class ControlFile:
    """Where header fields lie, and whether strings are expanded (None: it does not say)."""

    layout: dict[str, Field]
    is_expanded: bool | None


def read_control_file(records: Iterable[bytes], page: CodePage) -> ControlFile:
    """Read the records of a control file.

    Raises:
        BadOption: a description of a field is none, or changes how wide a known field is.
    """
    layout = dict(LAYOUT)
    positions: dict[str, tuple[int, int]] = {}
    is_expanded = None
    for record in records:
        kind = _text(record, 0, 4, page)
        if kind == "XHDF":
            name = _text(record, 4, 22, page).replace(" ", "")
            positions[name] = (_number(record, 32, page), _number(record, 27, page))
        elif kind == "DLDS":
            is_expanded = _text(record, 59, 60, page) == "Y"
    return ControlFile(_placed(positions) if positions else layout, is_expanded)


def _placed(positions: dict[str, tuple[int, int]]) -> dict[str, Field]:
    layout = dict(LAYOUT)
    if "LENGTH" not in positions:
        raise BadOption("control: its XHDF records describe no field LENGTH.", _REMEDY)
    base = positions["LENGTH"][0]  # the first field: positions count from 0 or from 1
    for name, field in LAYOUT.items():
        if name not in positions or base not in (0, 1):
            raise BadOption(f"control: its XHDF records do not place field {name}.", _REMEDY)
        at, width = positions[name]
        if width != field.width or at < base:
            raise BadOption(
                f"control: field {name} has {width} bytes, where {field.width} are known.", ""
            )
        layout[name] = Field(at - base, width, field.kind)
    return layout


def _text(record: bytes, first: int, end: int, page: CodePage) -> str:
    if len(record) < end:
        raise BadOption(f"control: a record of {len(record)} bytes is cut.", _REMEDY)
    try:
        return page.decode(record[first:end]).strip()
    except BadDb2Value as bad:
        raise BadOption(f"control: {bad.reason}.", _REMEDY) from None


def _number(record: bytes, at: int, page: CodePage) -> int:
    text = _text(record, at, at + 5, page)
    if not (text.isdecimal() and text.isascii()):
        raise BadOption("control: an XHDF record has a length or position that is no number.", _REMEDY)
    return int(text)
