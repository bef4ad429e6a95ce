"""Run SELECT and SELECT INTO TEMP.

Rows are found under the log's condition: those of one table in index order step by step (`scans`),
others at once. They become values as they are fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...answers import CursorKind, ResultColumn, StatementOutcome, StatementType
from ...column_types.encoding import EmulatedType
from ...sql_errors import sql_error
from ...tables.tables import EmulatedTableName, make_table
from ..language.tokens import StatementTokens
from ..reading import SessionView
from ..sources import SourceTable
from ..storage import RowValues, Storage
from ..work import Work
from .definitions import Definitions
from .from_clause import ParsedQuery
from .plans import BoundValues, Plan
from .queries import Queries
from .scans import Scan, ScannedRows
from .table_text import ColumnText
from .update_cursors import UpdateScan


class Selects:
    """Reads queries that are statements."""

    def __init__(self, tokens: StatementTokens, reading: SessionView) -> None:
        self.tokens = tokens
        self.reading = reading

    def select(self) -> Plan:
        """Read a query, behind SELECT."""
        tokens, queries = self.tokens, Queries(self.tokens, self.reading)
        query = queries.query()
        tokens.expect_end()
        known = queries.parameters
        numbers = range(1, tokens.parameter_count + 1)
        parameters = [known.get(n) or queries.text(32739) for n in numbers]
        self.reading.check(query.sql, queries.tables, tokens.parameter_count)
        if query.into:
            return self._into_temporary(query, queries.tables, parameters)
        kinds = [item.known_type for item in query.items]
        columns = [
            ResultColumn(item.name, kind, item.not_null)
            for item, kind in zip(query.items, kinds, strict=True)
        ]

        def run(given: BoundValues) -> StatementOutcome:
            found = ScannedRows(kinds, self._pages(query, queries.tables, given))
            return StatementOutcome(rows=found, found=found)

        return Plan(
            StatementType.SELECT,
            parameters,
            columns,
            queries.tables,
            query=run,
            is_volatile=queries.is_volatile,
            declare=self._declare if query.locks_rows else None,
        )

    def _declare(self, cursor: CursorKind) -> None:
        """Take note of how the query's rows will be fetched; SqlError if they cannot be locked so."""
        if cursor.scrolls:
            raise sql_error(-526)
        if not cursor.holds:
            self.reading.must_be_in_transaction()
        self.reading.declared = cursor

    def _pages(
        self, query: ParsedQuery, tables: Sequence[SourceTable], given: BoundValues
    ) -> Iterator[list[RowValues]]:
        table = tables[0] if tables else None
        if query.scan is not None and isinstance(table, Storage) and query.locks_rows:
            cursor, self.reading.declared = self.reading.declared, CursorKind()
            return UpdateScan(self.reading, query.scan, table, given, cursor).begin()
        if query.scan is not None and isinstance(table, Storage):
            return Scan(self.reading, query.scan, table, given).begin()
        rows = self.reading.rows(query.sql, tables, given, query.probe)
        return iter([rows] if rows else [])

    def _into_temporary(
        self,
        query: ParsedQuery,
        tables: Sequence[SourceTable],
        parameters: Sequence[EmulatedType],
    ) -> Plan:
        columns = [ColumnText(item.name, item.known_type) for item in query.items]

        def change(work: Work, given: BoundValues) -> StatementOutcome:
            rows = self.reading.rows(query.sql, tables, given, query.probe)
            if query.into in self.reading.finder.temporary:
                raise sql_error(-310, query.into)
            name = EmulatedTableName(self.reading.database, self.reading.user, query.into)
            text = ", ".join(column.declaration for column in columns)
            locale = self.reading.server.databases[self.reading.database].locale
            try:
                table = make_table(name.quoted, text, locale, 0, "table")
            except ValueError:
                raise sql_error(-201) from None
            storage = self.reading.store.made(table)
            Definitions(self.tokens, self.reading).keep_temporary(work, storage, query.into_is_logged)
            for row in rows:
                self.reading.store.insert(storage, row)
            if self.reading.server.databases[self.reading.database].is_logged:
                work.log().write_definition()  # as of any table that is made
            return StatementOutcome(row_count=len(rows))

        return Plan(StatementType.OTHER, parameters, tables=tables, change=change)
