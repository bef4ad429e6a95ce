"""What a user says of a logical log.

Rule: what the control file says of the data file's bytes holds, unless the user says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from informix_capture_client.errors import BadOption
from informix_db2.code_pages import CodePage, code_page
from informix_db2.declared_tables import GRAPHIC, DeclaredTable
from informix_db2.decoding import MOST_BYTES
from informix_db2.logical_log.framing import FRAMINGS, bodies_of
from informix_db2.logical_log.header import LAYOUT, Field
from informix_db2.logical_log.images import READINGS
from informix_db2.logical_log.table_rows import ValueForm
from informix_db2.refused_bytes import BadDb2Value, ColumnValues, Refusals

_REMEDY = "Use the control file that was written with the data file, in the same framing."


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
                f"control: field {name} has {width} bytes instead of {field.width}.", _REMEDY
            )
        layout[name] = Field(at - base, width, field.kind)
    return layout


def _text(record: bytes, first: int, end: int, page: CodePage) -> str:
    if len(record) < end:
        raise BadOption(f"control: a record of {len(record)} bytes is truncated.", _REMEDY)
    try:
        return page.decode(record[first:end]).strip()
    except BadDb2Value as bad:
        raise BadOption(f"control: {bad.reason}.", _REMEDY) from None


def _number(record: bytes, at: int, page: CodePage) -> int:
    text = _text(record, at, at + 5, page)
    if not (text.isdecimal() and text.isascii()):
        raise BadOption(
            "control: an XHDF record has a length or position that is not a number.", _REMEDY
        )
    return int(text)


@dataclass(frozen=True)
class LogicalLogSettings:
    """What a logical log looks like.

    Attributes:
        framing: how records lie in a value: framing.py.
        image_length: what lengths in front of images count: images.py, or auto.
        header_encoding: code page of the header and of the control file.
        encoding: code page of CHAR, VARCHAR, dates and times.
        graphic_encoding: code page of GRAPHIC; UTF-16 where `encoding` is UTF-8, else to be named.
        float_format: hfp for floats of System/360, or ieee.
        expanded: whether strings have all the room declared (EXPANDVAR); None: as the control file
        says. control: the control file's bytes, in the same framing; None for the layout of 288 bytes.
        ids: of declared tables with long names DBID, PSID and TBOBID, as "256.2.3".
        other_tables: whether rows of tables that are not declared are bad, or skipped.
        rolled_back: whether what was not committed is skipped, or comes as rows.
        max_value_bytes: a value with more bytes is refused.
    """

    framing: str = "rdw"
    image_length: str = "auto"
    header_encoding: str | int = "cp037"
    encoding: str | int = "cp037"
    graphic_encoding: str | int | None = None
    float_format: Literal["hfp", "ieee"] = "hfp"
    expanded: bool | None = None
    control: bytes | None = None
    ids: Mapping[str, str] | None = None
    other_tables: Literal["fail", "skip"] = "fail"
    rolled_back: Literal["skip", "rows"] = "skip"
    max_value_bytes: int = MOST_BYTES

    def __post_init__(self) -> None:
        known = {
            "framing": FRAMINGS,
            "image_length": ("auto", *READINGS),
            "float_format": ("hfp", "ieee"),
            "other_tables": ("fail", "skip"),
            "rolled_back": ("skip", "rows"),
        }
        for option, values in known.items():
            if (given := getattr(self, option)) not in values:
                raise BadOption(f"{option}: {given!r} is not one of {', '.join(values)}.")
        if self.framing == "message" and self.image_length == "auto":
            # What fits is found over a whole file. A message is too little, and those that come
            # together are others with each batch.
            raise BadOption(
                "image_length=auto requires a whole file, but framing is message.",
                f"Set image_length to one of {', '.join(READINGS)}.",
            )

    @cached_property
    def header_page(self) -> CodePage:
        """The code page of the header."""
        return code_page(self.header_encoding)

    @cached_property
    def control_file(self) -> ControlFile:
        """What the control file says, or what holds without one."""
        if self.control is None:
            return read_control_file((), self.header_page)
        values = ColumnValues.of([self.control], ["the control file"])
        framing = "rdw" if self.framing == "message" else self.framing
        bodies = bodies_of(values, 0, framing, Refusals(values, is_row=False))
        return read_control_file([self.control[b.start : b.end] for b in bodies], self.header_page)

    def require_graphic_encoding(self, tables: Iterable[DeclaredTable]) -> None:
        """Refuse graphic columns whose code page is not known.

        Of a Unicode table it is UTF-16; of an EBCDIC or ASCII one whatever the subsystem was given.

        Raises:
            BadOption: names the first of them.
        """
        if self.graphic_encoding is not None or code_page(self.encoding).is_utf8:
            return
        for table in tables:
            if found := next((column for column in table.columns if column.kind in GRAPHIC), None):
                raise BadOption(
                    f"graphic_encoding: column {found.name} of {table.name} is {found.kind}, but its"
                    f" code page cannot be derived from encoding {self.encoding}.",
                    "Set graphic_encoding, such as utf-16-be for a Unicode table, or a CCSID.",
                )

    @property
    def row_form(self) -> ValueForm:
        """How values of rows are written."""
        is_expanded = self.control_file.is_expanded if self.expanded is None else self.expanded
        return ValueForm(
            code_page(self.encoding),
            code_page(self.graphic_encoding or "utf-16-be"),
            self.float_format == "hfp",
            bool(is_expanded),
        )
