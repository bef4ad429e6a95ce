"""The spool format of rows of several tables: each table's rows in separate columns.

Rule: size and cost depend on the tables that occur, not on all delivered tables. A record batch is one
row, a *group* of changes, and its columns are lists; the file names the tables of its rows and no
others. `delivered_tables.py` of the spool converts groups into delivered rows, using the schema's
metadata.

    column 0    list of transactions: shared values of their changes, and the number of changes
    column 1    list of changes, in commit order: metadata of each, some texts as codes; its table
    columns 2-  a list of rows for each table that occurs, in the order of changes

A change has one row per image in its table's list; `images` lists them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from informix_capture_client.records import Integers
from informix_capture_client.shapes.captured_tables import CapturedTables
from informix_capture_client.shapes.change_columns import BATCH_ROWS, Changes
from informix_capture_client.shapes.stored_form import DELIVERED, SHARED_TYPES, shared_values
from informix_capture_client.values import fixed_width

TRANSACTIONS, CHANGES = "informix_cdc.transactions", "informix_cdc.changes"
COUNT, TABLE = "changes", "table"
CODE = pa.int8()
# Names in files, not modules.
FORM, VERSION = b"informix_cdc.form", b"informix_cdc.form_version"
CODES, IMAGES, TABLES = b"informix_cdc.codes", b"informix_cdc.images", b"informix_cdc.tables"

# Each table costs a group some microseconds and some bytes a column, however few rows it has there.
_ROWS_A_TABLE = 256
_MOST_ROWS = 1 << 17
_GROUP_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class GroupedShape:
    """The grouped form of a shape, without the tables.

    Attributes:
        delivered: the delivered columns in order; None stands for one struct column per table.
        about: the stored metadata columns of each change, without the table number.
        shared: the delivered columns that are the same for all changes of a transaction.
        codes: the texts of the columns of `about` that are stored as small numbers.
        kind: the column of `about` that determines which images a change has.
        images: for each code of `kind` the delivered columns of its rows, "" for the tables' columns.
        named: the delivered column with the name of a change's table, if any.
        form: the name of the form in files.
    """

    delivered: Sequence[str | None]
    about: Sequence[pa.Field]
    shared: Sequence[str]
    codes: Mapping[str, Sequence[str]]
    kind: str
    images: Sequence[Sequence[str]]
    named: str | None = None
    form: bytes = b"grouped"

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The metadata that a reader needs."""
        return {
            FORM: self.form,
            VERSION: b"1",
            DELIVERED: json.dumps(list(self.delivered)).encode(),
            CODES: json.dumps({name: list(texts) for name, texts in self.codes.items()}).encode(),
            IMAGES: json.dumps({"by": self.kind, "columns": list(map(list, self.images))}).encode(),
        }


class GroupedForm:
    """Stores changes of several tables.

    Args:
        shape: the stored columns of a change.
        tables: the tables that are delivered.
        columns: the name of each table's column.
    """

    def __init__(self, shape: GroupedShape, tables: CapturedTables, columns: Sequence[str]) -> None:
        self._shape, self._tables, self._names = shape, tables, columns
        shared = [(name, SHARED_TYPES[name]) for name in shape.shared]
        self._transaction = pa.struct([*shared, (COUNT, pa.int32())])
        self._change = pa.struct([*shape.about, (TABLE, pa.int32())])
        self._lists = [pa.list_(struct) for struct in tables.structs]
        self._empty = [pa.array([[]], kind) for kind in self._lists]
        self._present: Sequence[int] = ()
        self.schema = pa.schema([])

    def begin(self, present: Sequence[int]) -> None:
        """Store changes of these tables from now on; `schema` names only them."""
        self._present = present
        named = {
            "numbers": list(present),
            "names": [str(self._tables.tables[number].name) for number in present],
            "delivered": self._shape.named,
        }
        if self._tables.definitions:
            named["definitions"] = [self._tables.definitions[number] for number in present]
        self.schema = pa.schema(
            [
                (TRANSACTIONS, pa.list_(self._transaction)),
                (CHANGES, pa.list_(self._change)),
                *((self._names[number], self._lists[number]) for number in present),
            ],
            metadata={**self._shape.metadata, TABLES: json.dumps(named).encode()},
        )

    def batch(self, about: Sequence[pa.Array], changes: Changes, images: Changes) -> pa.RecordBatch:
        """Return changes as a group.

        Args:
            about: the metadata columns of each change, without its table.
            changes: the changes.
            images: the records with their rows, in the same order.

        Raises:
            ProtocolViolation: a row cannot be decoded.
        """
        tables = fixed_width(
            pa.int32(), changes.table_ids.astype(np.int32), np.zeros(len(changes), bool)
        )
        described = pa.StructArray.from_arrays([*about, tables], fields=list(self._change))
        rows = self._tables.rows_by_table(images) if len(images) else {}
        lists = [
            _as_list(rows[number], self._lists[number]) if number in rows else self._empty[number]
            for number in self._present
        ]
        of_all = zip([self._transactions(changes), described], self.schema.types[:2], strict=True)
        columns = [*(_as_list(values, kind) for values, kind in of_all), *lists]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _transactions(self, changes: Changes) -> pa.StructArray:
        which = changes.transactions
        ends = np.flatnonzero(np.append(which[1:] != which[:-1], True))
        counts = np.diff(ends, prepend=-1).astype(np.int32)
        values = shared_values(self._shape.shared, changes, which[ends])
        values.append(fixed_width(pa.int32(), counts, np.zeros(len(counts), bool)))
        return pa.StructArray.from_arrays(values, fields=list(self._transaction))


def group_limits(tables: int) -> tuple[int, int]:
    """Return the maximum rows, and bytes of records, of a group."""
    return max(min(_ROWS_A_TABLE * tables, _MOST_ROWS), BATCH_ROWS), _GROUP_BYTES


def _as_list(values: pa.Array, kind: pa.ListType) -> pa.ListArray:
    bounds = pa.py_buffer(np.array([0, len(values)], np.int32))
    return pa.Array.from_buffers(kind, 1, [None, bounds], 0, children=[values])


def codes_of(numbers: Integers) -> pa.Array:
    """Return codes in stored form."""
    return fixed_width(CODE, numbers.astype(np.int8), np.zeros(len(numbers), bool))
