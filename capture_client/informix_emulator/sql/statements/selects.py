"""Run SELECT.

Rows are found under the log's condition: those of one table in index order step by step (`scans`),
others at once. They become values as they are fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...answers import ResultColumn, StatementOutcome, StatementType
from ...sql_errors import sql_error
from ..language.tokens import StatementTokens
from ..reading import SessionView
from ..sources import SourceTable
from ..storage import RowValues, Storage
from .from_clause import ParsedQuery
from .plans import BoundValues, Plan
from .queries import Queries
from .scans import Scan, ScannedRows


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
            declare=_refuse if query.locks_rows else None,
        )

    def _pages(
        self, query: ParsedQuery, tables: Sequence[SourceTable], given: BoundValues
    ) -> Iterator[list[RowValues]]:
        table = tables[0] if tables else None
        if query.scan is not None and isinstance(table, Storage):
            return Scan(self.reading, query.scan, table, given).begin()
        rows = self.reading.rows(query.sql, tables, given, query.probe)
        return iter([rows] if rows else [])


def _refuse(scrolls: bool) -> None:
    """Refuse to open a cursor FOR UPDATE: one that scrolls as a server does, others as not modelled."""
    raise sql_error(-526 if scrolls else -201)
