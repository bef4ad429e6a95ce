"""The logical log header: fifty fields in front of every data change record.

Rule: the record says how long its header is; 288 bytes are known here, and more are passed over. Where
fields lie elsewhere, the control file's XHDF records say so. Numbers are big-endian, texts EBCDIC.

(BMC, "Logical log data file", Log Master for DB2 11.1 and later; "Data change header description
record".)
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from informix_db2.binary_values import (
    Bools,
    Matrix,
    binaries_of,
    digits_of,
    fields_of,
    hexadecimal_of,
    nibbles_of,
    numbers_of,
    punctuated,
    texts_of,
)
from informix_db2.changes import IntArray
from informix_db2.code_pages import CodePage

_FRACTION_DIGITS = 15
_MOMENT = "0000-00-00-00.00.00"

_Kind = Literal["number", "signed", "text", "hex", "moment"]


class Field(NamedTuple):
    """Where a field lies, and what it is."""

    at: int
    width: int
    kind: _Kind


def _laid_out() -> dict[str, Field]:
    fields: dict[str, Field] = {}
    at = 0
    for name, width, kind in _IN_ORDER:
        if name:
            fields[name] = Field(at, width, kind)
        at += width
    return fields


_IN_ORDER: tuple[tuple[str, int, _Kind], ...] = (
    ("LENGTH", 2, "number"),
    ("SYSTEMID", 4, "text"),
    ("DBID", 2, "number"),
    ("PSID", 2, "number"),
    ("TBOBID", 2, "number"),
    ("TBOWNERLEN", 2, "number"),
    ("TBNAMELEN", 2, "number"),
    ("DBNAME", 8, "text"),
    ("TSNAME", 8, "text"),
    ("TABLEOWNER", 8, "text"),
    ("TABLENAME", 18, "text"),
    ("PARTNUM", 2, "number"),
    ("TIMESTAMP", 17, "moment"),
    ("LOGLRSN", 10, "hex"),
    ("LOGRBA", 10, "hex"),
    ("MEMBERID", 2, "number"),
    ("RID", 5, "hex"),
    ("CHANGETYPE", 2, "text"),
    ("SQLTYPE", 1, "text"),
    ("LOGRECDISP", 1, "text"),
    ("SQLSRCTYPE", 1, "text"),
    ("LOGBYTES", 4, "number"),
    ("LOGDELTA", 2, "signed"),
    ("ANOMALYROWID", 1, "number"),
    ("ANOMALYTYPE", 1, "text"),
    ("ANOMALYRBA", 10, "hex"),
    ("UORTIMESTAMP", 17, "moment"),
    ("UORCOMMITTIMESTAMP", 17, "moment"),
    ("UORDISP", 1, "text"),
    ("UORIDLRSN", 10, "hex"),
    ("UORID", 10, "hex"),
    ("SEGLEN", 2, "number"),
    ("TOTALSEGS", 2, "number"),
    ("SEGNUM", 2, "number"),
    ("", 4, "hex"),
    ("UORCOMMITLRSN", 10, "hex"),
    ("UORCOMMITPOINT", 10, "hex"),
    ("CONNECTIONTYPE", 2, "text"),
    ("CONNECTID", 8, "text"),
    ("CORRELATIONID", 12, "text"),
    ("AUTHID", 8, "text"),
    ("PLAN", 8, "text"),
    ("LUWNETWORKID", 8, "text"),
    ("LUWNAME", 8, "text"),
    ("LUWINSTANCENO", 6, "hex"),
    ("LUWSEQUENCENO", 2, "number"),
    ("INCOMPLETETRANS", 1, "text"),
    ("INCOMPLETEDEP", 1, "text"),
    ("UORHASCOMP", 1, "text"),
    ("SQLRIRBA", 10, "hex"),
    ("PAGENUMFMT", 1, "text"),
)
LAYOUT = _laid_out()
_TYPES = {"number": pa.int64(), "signed": pa.int32()}
HEADER = pa.struct([(name, _TYPES.get(field.kind, pa.string())) for name, field in LAYOUT.items()])
_CODES = {1: "u1", 2: "u2", 4: "u4"}


class RecordHeaders:
    """Headers of records, read a field at a time."""

    def __init__(
        self, data: np.ndarray, starts: IntArray, layout: Mapping[str, Field], page: CodePage
    ) -> None:
        self._layout = layout
        self._page = page
        self._texts: dict[str, pa.Array] = {}
        self._bytes = fields_of(data, starts, max(field.at + field.width for field in layout.values()))

    def some(self, which: slice) -> RecordHeaders:
        """Return some that follow on each other."""
        found = copy(self)
        found._bytes = self._bytes[which]
        found._texts = {name: texts[which] for name, texts in self._texts.items()}
        return found

    def raw(self, name: str) -> Matrix:
        """Return a field's bytes."""
        field = self._layout[name]
        return np.ascontiguousarray(self._bytes[:, field.at : field.at + field.width])

    def numbers(self, name: str) -> IntArray:
        """Return a field of numbers."""
        code = _CODES[self._layout[name].width]
        code = code.replace("u", "i") if self._layout[name].kind == "signed" else code
        return numbers_of(self.raw(name), code, "big").astype(np.int64)

    def texts(self, name: str) -> tuple[pa.Array, dict[int, str]]:
        """Return a field of characters without the blanks behind them, and which are none."""
        if (known := self._texts.get(name)) is not None:
            return known, {}
        raw = self.raw(name)
        values = binaries_of(raw, np.ones(len(raw), bool))
        texts, bad = self._page.texts_and_bad(values)
        texts = pa.compute.ascii_rtrim(texts, " ")  # no byte of a longer character is a blank
        if not bad:
            self._texts[name] = texts
        return texts, bad

    def hexadecimal(self, name: str) -> pa.Array:
        """Return a field as hexadecimal digits."""
        raw = self.raw(name)
        return hexadecimal_of(raw, np.ones(len(raw), bool))

    def moments(self, name: str) -> pa.Array:
        """Return a timestamp with all its digits; NULL where all are zero, or one is none."""
        nibbles = nibbles_of(self.raw(name))
        digits = digits_of(nibbles[:, : 14 + _FRACTION_DIGITS])
        valid: Bools = np.asarray((nibbles <= 9).all(axis=1) & nibbles.any(axis=1))
        return texts_of(punctuated(digits, _MOMENT, _FRACTION_DIGITS), valid)

    def struct(self) -> tuple[pa.StructArray, dict[int, str]]:
        """Return all fields, and of headers with texts that are none what is wrong."""
        wrong: dict[int, str] = {}
        columns = []
        for name, field in LAYOUT.items():
            if field.kind == "text":
                column, bad = self.texts(name)
                for place, reason in bad.items():
                    wrong.setdefault(place, f"header field {name}: {reason}")
            elif field.kind in ("number", "signed"):
                column = pa.array(self.numbers(name)).cast(HEADER.field(name).type)
            else:
                column = self.moments(name) if field.kind == "moment" else self.hexadecimal(name)
            columns.append(column)
        return pa.StructArray.from_arrays(columns, fields=list(HEADER)), wrong
