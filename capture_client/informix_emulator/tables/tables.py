"""Tables and databases: names, columns, and rows as the log holds them.

A row is encoded once, when it is written: all fixed columns, then all variable ones. A session's row is
cut out of those bytes.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile

from ..column_types.column_list import ColumnDefinition, parse_column_list
from ..column_types.encoding import MOST_ROW_BYTES, EmulatedType, column_type
from ..column_types.locales import codec_of
from .definition import Definition

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_QUALIFIED_NAME = re.compile(r'\s*(\w+):(?:"((?:[^"]|"")+)"|(\w+))\.(?:"((?:[^"]|"")+)"|(\w+))\s*')

_LARGE_OBJECTS = (10, 11)  # sysxtdtypes.extended_id of BLOB and CLOB
HIDDEN = 1  # syscolumns.colattr
_COLLECTIONS = (19, 20, 21)  # syscolumns.coltype of SET, MULTISET and LIST

EncodedRow = tuple[bytes, bytes]  # the size array of the variable columns, the payload


@dataclass(frozen=True, slots=True)
class EmulatedTableName:
    """A table's full name, database:owner.table."""

    database: str
    owner: str
    table: str

    @classmethod
    def parse(cls, text: str) -> EmulatedTableName:
        """Read `database:owner.table`; ValueError if a part is missing."""
        match = _QUALIFIED_NAME.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not in the form database:owner.table")
        database, quoted_owner, owner, quoted_table, table = match.groups()
        return cls(database.lower(), _meant(quoted_owner, owner), _meant(quoted_table, table))

    def __str__(self) -> str:
        return f"{self.database}:{self.owner}.{self.table}"

    @property
    def quoted(self) -> str:
        """The name as `parse` reads it back, its case kept."""
        owner, table = (part.replace('"', '""') for part in (self.owner, self.table))
        return f'{self.database}:"{owner}"."{table}"'


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of a table."""

    name: str
    type: EmulatedType
    not_null: bool

    @property
    def declaration(self) -> str:
        """The column as a TABSCHEMA record prints it."""
        return f"{_quoted(self.name)} {self.type.spelling}"


@dataclass(frozen=True, slots=True)
class Index:
    """An index of a table, and the constraint that it stands for."""

    name: str
    columns: tuple[str, ...]
    kind: str  # P primary key, U unique constraint, I unique index, D index of duplicates


class EmulatedTable:
    """A table: its columns and its entry in the catalog."""

    def __init__(
        self, name: EmulatedTableName, columns: Sequence[TableColumn], tabid: int, kind: str
    ) -> None:
        self.name = name
        self.columns = tuple(columns)
        self.attributes: dict[str, int] = {}  # syscolumns.colattr of shadow columns, by name
        self.tabid = tabid
        self.kind = kind
        self.created = ""
        self.partnum = 0
        self.last_serials = Counter[str]()  # the last number of each kind of serial column
        self.created_at = 0.0  # of its partition, in seconds since 1970
        self.full_row_logging = False
        self.written = Counter[int]()  # records of rows, by their type
        self.locks_pages = False  # LOCK MODE PAGE
        # of its rows: the oldest layout there may be, and the present one
        self.versions: tuple[int, int] = (0, 0)
        self.primary_key: tuple[str, ...] = ()
        self.definition = Definition()
        self.disabled: set[str] = set()  # names of indexes and constraints
        self.indexes: list[Index] = []  # by name; that of the primary key if SQL made the table
        capturable = [column for column in columns if column.type.is_capturable]
        self.fixed = [column for column in capturable if column.type.size is not None]
        self.variable = [column for column in capturable if column.type.size is None]
        self.large_objects = [c.name for c in columns if c.type.extended_id in _LARGE_OBJECTS]
        self.fixed_bytes = sum(column.type.size or 0 for column in self.fixed)
        self._plan = [_step(column) for column in (*self.fixed, *self.variable)]
        self._names = {column.name for column in columns}
        self._pack_sizes = struct.Struct(f">{len(self.variable)}I").pack

    def count_serial(self, column: TableColumn, number: int) -> None:
        """Let a serial column continue behind a number, if it has not passed it."""
        kind = column.type.spelling
        self.last_serials[kind] = max(self.last_serials[kind], number)

    @property
    def all_indexes(self) -> list[Index]:
        """Its indexes, that of a primary key without a name of its own too."""
        if self.primary_key and not any(index.kind == "P" for index in self.indexes):
            return [Index(f"u{self.tabid}_1", self.primary_key, "P"), *self.indexes]
        return self.indexes

    def is_hidden(self, column: str) -> bool:
        """Whether a column belongs neither to `*` nor to an INSERT without a list of columns."""
        return bool(self.attributes.get(column, 0) & HIDDEN)

    @property
    def captured_count(self) -> int:
        """How many columns a session can capture."""
        return len(self._plan)

    @property
    def reached(self) -> list[str]:
        """The columns before the first collection; what follows one is not captured.

        Qlik's manual states that of Informix. What the server does when such a column is asked for is
        not public: here TABSCHEMA and the rows are without it, and there is no error.
        """
        before = takewhile(lambda column: column.type.coltype not in _COLLECTIONS, self.columns)
        return [column.name for column in before]

    @property
    def is_logged(self) -> bool:
        """Whether changes of it reach the log: neither a view nor a raw table."""
        return self.kind == "table"

    def encode(self, row: Mapping[str, object]) -> EncodedRow:
        """Encode a row; a missing column is NULL. ValueError names the column that is wrong."""
        if not row.keys() <= self._names:
            raise ValueError(f"{self.name} has no columns {sorted(row.keys() - self._names)}")
        get = row.get
        try:
            pieces = [
                null if (value := get(name)) is None else encode(value)
                for name, encode, null in self._plan
            ]
            payload = b"".join(pieces)  # a missing NOT NULL column has no bytes for NULL
        except (ValueError, TypeError, ArithmeticError, struct.error):
            raise self._explain(row) from None
        return self._pack_sizes(*map(len, pieces[len(self.fixed) :])), payload

    def encode_sizes(self, sizes: Sequence[int], payload: bytes) -> EncodedRow:
        """Check a row that is encoded already against the columns."""
        fits = len(sizes) == len(self.variable)
        if not fits or self.fixed_bytes + sum(sizes) != len(payload):
            raise ValueError(f"{len(payload)} bytes with sizes {sizes} are no row of {self.name}")
        return self._pack_sizes(*sizes), payload

    def _explain(self, row: Mapping[str, object]) -> ValueError:
        """Find the column that stopped a row."""
        for name, encode, null in self._plan:
            value = row.get(name)
            try:
                b"".join([null if value is None else encode(value)])
            except (ValueError, TypeError, ArithmeticError, struct.error) as reason:
                detail = "NULL is not allowed" if value is None else _reason(reason)
                return ValueError(f"column {name} of {self.name}: {detail}")
        return ValueError(f"a row of {self.name} could not be encoded")


def make_table(text: str, column_list: str, locale: str, tabid: int, kind: str) -> EmulatedTable:
    """Build a table from its name and the column list of its CREATE TABLE."""
    codec = codec_of(locale)
    columns = [_column(definition, codec) for definition in parse_column_list(column_list)]
    table = EmulatedTable(EmulatedTableName.parse(text), columns, tabid, kind)
    if table.fixed_bytes > MOST_ROW_BYTES:
        raise ValueError(f"a row of {table.name} has {table.fixed_bytes} bytes, and the most is 32,767")
    return table


@dataclass(slots=True)
class Database:
    """A database and its tables, by owner and name."""

    name: str
    is_logged: bool
    locale: str
    is_buffered: bool = False
    is_ansi: bool = False
    ignores_case: bool = False  # NLSCASE INSENSITIVE, as its catalog says it; comparisons know no NCHAR
    tables: dict[tuple[str, str], EmulatedTable] = field(default_factory=dict)
    next_tabid: int = 100  # lower ones belong to the catalog
    constraint_numbers: dict[tuple[int, str], int] = field(default_factory=dict)  # by tabid and name


class Capture:
    """The columns of one table that a session captures, under the table's number in the session."""

    def __init__(
        self, table: EmulatedTable, names: Sequence[str], user_data: int, started: int = 0
    ) -> None:
        self.table = table
        self.user_data = user_data
        self.started = started
        self._fixed = [column for column in table.fixed if column.name in names]
        self._variable = [column for column in table.variable if column.name in names]
        self.is_whole = len(self._fixed) + len(self._variable) == table.captured_count
        self._fixed_slices = _slices(table.fixed, self._fixed)
        self._variable_places = [table.variable.index(column) for column in self._variable]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Bytes of the fixed columns, number of fixed columns, of variable columns."""
        size = sum(column.type.size or 0 for column in self._fixed)
        return size, len(self._fixed), len(self._variable)

    @property
    def names(self) -> tuple[str, str]:
        """The fixed columns' names and the variable ones', with commas."""
        fixed, variable = (
            ",".join(column.name for column in part) for part in (self._fixed, self._variable)
        )
        return fixed, variable

    @property
    def schema_text(self) -> bytes:
        """The column list of the TABSCHEMA record, its trailing NUL included."""
        columns = (*self._fixed, *self._variable)
        return ", ".join(column.declaration for column in columns).encode() + b"\0"

    def cut(self, sizes: bytes, payload: bytes) -> EncodedRow:
        """Return what is captured of an encoded row."""
        if self.is_whole:
            return sizes, payload
        lengths = struct.unpack(f">{len(sizes) // 4}I", sizes)
        starts = list(accumulate(lengths, initial=self.table.fixed_bytes))
        pieces = [payload[place] for place in self._fixed_slices]
        pieces += [payload[starts[n] : starts[n + 1]] for n in self._variable_places]
        kept = [sizes[4 * n : 4 * n + 4] for n in self._variable_places]
        return b"".join(kept), b"".join(pieces)


def _slices(all_columns: Sequence[TableColumn], chosen: Sequence[TableColumn]) -> list[slice]:
    starts = accumulate((column.type.size or 0 for column in all_columns), initial=0)
    places = {column.name: start for column, start in zip(all_columns, starts, strict=False)}
    return [slice(places[c.name], places[c.name] + (c.type.size or 0)) for c in chosen]


def _column(definition: ColumnDefinition, codec: str) -> TableColumn:
    kind = column_type(definition.type, codec)
    is_serial = kind.spelling in ("serial", "bigserial", "serial8")
    return TableColumn(definition.name, kind, definition.not_null or is_serial)


def _step(column: TableColumn) -> tuple[str, Callable[[object], bytes], bytes]:
    null = None if column.not_null else column.type.null
    return column.name, column.type.encode, null  # type: ignore[return-value]  # None: see encode


def _meant(delimited: str | None, plain: str) -> str:
    return plain.lower() if delimited is None else delimited.replace('""', '"')


def _reason(reason: BaseException) -> str:
    return str(reason) if isinstance(reason, ValueError) else f"{reason} (wrong kind of value)"


def _quoted(name: str) -> str:
    # how the server prints a delimited name is not public; CREATE TABLE syntax asks for quotes
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'
