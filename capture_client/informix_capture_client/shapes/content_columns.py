"""Columns of large objects: locate the objects of rows, and replace handles by contents.

Rule: contents are passed with the changes that they belong to (`Changes.objects`), and released with
them. A row whose object was not read has a status instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from informix_capture_client.choices import DecodeRules
from informix_capture_client.object_readers import (
    LOCATOR_BYTES,
    NOWHERE,
    Contents,
    FoundContents,
    ObjectPlace,
    Reselecting,
    content_type,
    contents_of,
    delivered_schema,
    is_content_type,
)
from informix_capture_client.records import RecordKind, is_one_of
from informix_capture_client.shapes.announced_tables import AnnouncedTables
from informix_capture_client.shapes.change_columns import Changes
from informix_capture_client.transactions import CommittedTransactions
from informix_capture_client.values import BadValue, bad_value, masked_contents

_WITH_CONTENTS = is_one_of(
    RecordKind.INSERT, RecordKind.UPDAFT
)  # rows whose objects may be there still


@dataclass(frozen=True, slots=True)
class ObjectContents:
    """Settings for reading large objects.

    Attributes:
        reselecting: by table id, how to find objects by the keys of their rows instead.
    """

    reader: Contents
    reselecting: Mapping[int, Reselecting] = field(default_factory=dict)


class ContentColumns:
    """The content columns of a fixed list of tables.

    Args:
        announced: the tables, as they are captured.
        rules: determine which columns become contents.
        reselecting: by table id, how to find objects by the keys of their rows.

    Attributes:
        schemas: the delivered schema of each table.
    """

    def __init__(
        self, announced: AnnouncedTables, rules: DecodeRules, reselecting: Mapping[int, Reselecting]
    ) -> None:
        self._announced = announced
        self._rules = rules
        self._reselecting = reselecting
        self.schemas = [
            delivered_schema(table, captured, rules)
            for table, captured in zip(announced.tables, announced.captured, strict=True)
        ]
        names = ([one.name for one in schema if is_content_type(one.type)] for schema in self.schemas)
        self._names = {number: found for number, found in enumerate(names) if found}
        self._columns = [{each.name: each for each in table.delivered} for table in announced.tables]

    def has(self, number: int) -> bool:
        """Return whether a table has such columns."""
        return number in self._names

    def filled(self, number: int, captured: list[pa.Array], rows: Changes) -> list[pa.Array]:
        """Return a table's columns with contents instead of handles, including TEXT and BYTE."""
        columns: list[pa.Array | None] = list(captured)
        for place, _ in self._announced.tables[number].reselected:
            columns.insert(place, None)
        for place, declared in enumerate(self.schemas[number]):
            if is_content_type(declared.type):
                columns[place] = self.contents(number, declared, columns[place], rows)
        return columns

    def contents(
        self, number: int, declared: pa.Field, handles: pa.Array | None, rows: Changes
    ) -> pa.StructArray:
        """Return a content column, given its handles; a TEXT or BYTE has none.

        Raises:
            ProtocolViolation: a content is not valid text.
        """
        objects = rows.objects or FoundContents()
        wanted = _WITH_CONTENTS[rows.kinds]
        places = self._places(number, declared.name, handles, rows)
        column = self._columns[number][declared.name]
        clear = content_type(column.type_text)
        try:
            found = contents_of(places, wanted, objects.found, clear, self._rules)
        except BadValue as bad:
            name = str(self._announced.tables[number].name)
            raise bad_value(name, declared.name, rows.where(bad.row), bad) from None
        return found if column.mask is None else masked_contents(found, column.mask, declared.type)

    def to_read(self, changes: Changes) -> list[list[ObjectPlace]]:
        """Return the objects to read for each record.

        An update that keeps the handle is read too: the content may have been changed in place.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        wanted: list[list[ObjectPlace]] = [[] for _ in range(len(changes))]
        for number, names in self._names.items():
            if not len(where := np.flatnonzero(changes.rows_of(number))):
                continue
            rows = changes.only(where)
            for name, handles in self._handles(number, names, rows):
                places = self._places(number, name, handles, rows)
                for row in np.flatnonzero(_WITH_CONTENTS[rows.kinds]).tolist():
                    if place := places[row]:  # neither NULL nor NOWHERE
                        wanted[where[row]].append(place)
        return wanted

    def _places(
        self, number: int, name: str, handles: pa.Array | None, rows: Changes
    ) -> Sequence[ObjectPlace | None]:
        """Return where the objects of rows are: by handle, or by the key of their row."""
        mask = self._columns[number][name].mask
        if mask is not None and mask.kind == "null":
            return [None] * len(rows)  # not even read
        by_key = self._reselecting.get(number)
        if handles is None:
            if by_key is None:
                return [NOWHERE] * len(rows)
            return by_key.of_rows(name, self._announced.captured_columns(number, by_key.key, rows))
        found = handles.to_pylist()
        if by_key is None or name not in by_key.statements:
            return [handle and handle[-LOCATOR_BYTES:] for handle in found]
        places = by_key.of_rows(name, self._announced.captured_columns(number, by_key.key, rows))
        return [handle and place for handle, place in zip(found, places, strict=True)]

    def _handles(
        self, number: int, names: Sequence[str], rows: Changes
    ) -> Iterator[tuple[str, pa.Array | None]]:
        """Yield content columns with their handles; a TEXT or BYTE has none."""
        if captured := [name for name in names if name in self._announced.captured[number].names]:
            columns = self._announced.captured_columns(number, captured, rows)
            yield from zip(captured, columns, strict=True)
        yield from ((column.name, None) for _, column in self._announced.tables[number].reselected)


class ContentReading:
    """Reads the large objects of changes; without a reader, changes are unchanged.

    Attributes:
        asked_for: the number of objects read so far.
    """

    def __init__(self, columns: ContentColumns, contents: ObjectContents | None) -> None:
        self._columns = columns
        self._contents = contents
        self.asked_for = 0

    def begin(self, transactions: Sequence[CommittedTransactions] = ()) -> None:
        """Start with the changes of these transactions; empty for snapshot rows."""
        if self._contents is not None:
            ids = [number for each in transactions for number in each.transaction_ids.tolist()]
            self._contents.reader.begin(frozenset(ids))

    def parts(self, changes: Iterator[Changes]) -> Iterator[Changes]:
        """Yield changes in parts whose large objects have been read; an update is never split."""
        if self._contents is None:
            yield from changes
            return
        for each in changes:
            wanted = self._columns.to_read(each)
            begins = np.flatnonzero(each.kinds != RecordKind.UPDAFT).tolist()
            begins[:1] = [0]  # an update without its first image is refused later
            bounds = [*begins, len(each)]
            units = [
                [place for row in wanted[first:end] for place in row] for first, end in pairwise(bounds)
            ]
            self.asked_for += sum(map(len, units))
            done = 0
            for count, found in self._contents.reader.pieces(units):
                part = slice(bounds[done], bounds[count])
                yield replace(each.only(part), objects=FoundContents(found))
                del found  # not in memory together with the next ones, nor until they come
                done = count
