"""Proofs about values: tables with a column of every type, written by SQL, captured, and selected.

Rule: see `outcomes.py`. Types are reported one by one, so that one does not hide the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import InformixCdcError, ProtocolViolation
from informix_cdc.proving.outcomes import Deviation, error_text, expect, needed
from informix_cdc.proving.proofs import proof
from informix_cdc.proving.prover import Prover
from informix_cdc.proving.reading import Reader
from informix_cdc.proving.sql_text import ContractTable, Values
from informix_cdc.proving.type_cases import TYPE_CASES, TypeCase

# A table has one SERIAL, one SERIAL8 or BIGSERIAL, and rows of at most 32,767 bytes (Guide to SQL).
_APART = ("serial8", "lvarchar(32739)")


class WideTable(NamedTuple):
    """A table with a column for each of some types; a row for each boundary value."""

    table: ContractTable
    cases: tuple[TypeCase, ...]

    def rows(self) -> Iterator[Values]:
        """Yield the values of all rows; columns with fewer values repeat theirs."""
        for number in range(max(len(case.values) for case in self.cases)):
            row = {name: case.values[number % len(case.values)] for name, case in self.columns()}
            yield {"id": str(number + 1), **row}

    def columns(self) -> Iterator[tuple[str, TypeCase]]:
        """Yield the name and the type of each column behind the key."""
        return ((f"c{place}", case) for place, case in enumerate(self.cases))


def wide_tables(prover: Prover, cases: Sequence[TypeCase] = TYPE_CASES) -> list[WideTable]:
    """Make the tables: two of types that the server surely has, one of each other type.

    A type that the server does not have is noted, and left out.
    """
    sure = [case for case in cases if not case.assumption]
    groups = [
        tuple(case for case in sure if case.type_text not in _APART),
        tuple(case for case in sure if case.type_text in _APART),
    ]
    return [_made(prover, group) for group in groups if group]


def _made(prover: Prover, cases: tuple[TypeCase, ...]) -> WideTable:
    columns = {f"c{place}": case.type_text for place, case in enumerate(cases)}
    return WideTable(prover.create_table({"id": "integer not null", **columns}), cases)


@proof(
    does="writes boundary values and NULL of every documented type, and compares captures with SELECT"
)
def values_of_every_type(prover: Prover) -> None:
    """Two tables, because of the limits of a table."""
    _require_same(prover, wide_tables(prover))


@proof(18, does="the same with BLOB, CLOB and DATETIME FRACTION TO FRACTION")
def values_of_less_certain_types(prover: Prover) -> None:
    """One table for each type, which the server may not have."""
    made = []
    for case in [case for case in TYPE_CASES if case.assumption == 18]:
        made.append(_made(prover, (case,)))
    _require_same(prover, made)


@proof(
    113, does="asks the driver how it describes a column of every type", transport="odbc", reads=False
)
def descriptions_by_a_driver(prover: Prover) -> None:
    """Each description is that of the declared type."""
    from informix_capture_client.row_fetch import block_reader

    rules = DecodeRules(codec=prover.codec)
    refused = []
    with prover.catalog() as catalog, prover.connection() as transport:
        for wide in wide_tables(prover):
            columns = prover.described(catalog, wide.table).columns[1:]
            for column, case in zip(columns, wide.cases, strict=True):
                asked = f"SELECT t.{column.name} FROM {wide.table.name} t WHERE 1 = 0"
                try:
                    list(block_reader(transport, rules).blocks(asked, (), [column], 1))
                except ProtocolViolation:
                    refused.append(case.type_text)
    expect(not refused, "the declared types", f"others for {', '.join(refused)}")


def _require_same(prover: Prover, made: Sequence[WideTable]) -> None:
    with prover.reading(*(wide.table for wide in made)) as (reader, writer):
        for wide in made:
            with needed("INSERT of literals is refused"):
                writer.insert_all(wide.table, [*wide.rows()])
        reader.until_ended(transactions=len(made))
    differing = [
        f"{case.type_text} ({problem})"
        for number, wide in enumerate(made)
        for case, problem in _problems(prover, reader, wide, number)
    ]
    if differing:
        raise Deviation("captured values are those of SELECT", "; ".join(differing))


def _problems(
    prover: Prover, reader: Reader, wide: WideTable, number: int
) -> Iterator[tuple[TypeCase, str]]:
    """Yield each type whose captured values differ from those of SELECT, and in how many rows."""
    printed = prover.printed(wide.table)
    try:
        captured = reader.decoded(wide.table, number)
    except (InformixCdcError, ValueError) as reason:
        found = error_text(reason) if isinstance(reason, InformixCdcError) else type(reason).__name__
        yield wide.cases[0], f"cannot be decoded: {found}"
        return
    written = len([*wide.rows()])
    expect(len(captured) == written == len(printed), f"{written} rows", f"{len(captured)} rows")
    for place, case in enumerate(wide.cases, 1):
        count = sum(
            ours[place] != theirs[place] for ours, theirs in zip(captured, printed, strict=True)
        )
        if count:
            yield case, f"{count} of {written} values"
