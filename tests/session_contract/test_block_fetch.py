"""The row that SELECT gives in blocks is the row that the log gives, as Arrow, of every type."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import pyarrow as pa
import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client.choices import DecodeRules
from informix_capture_client.records.records import TableSchema
from informix_capture_client.row_fetch import block_reader, key_argument
from informix_capture_client.values import Column, decode_payloads, parse_columns
from informix_cdc.proving.reading import Reader
from informix_cdc.proving.sql_text import ContractTable, identifier
from informix_cdc.proving.type_cases import TYPE_CASES, TypeCase

RULES = (
    DecodeRules(),
    DecodeRules(keep_blanks=True, intervals="string", floating_decimal="double"),
)


def captured(reader: Reader, number: int, rules: DecodeRules) -> pa.RecordBatch:
    """Return a table's inserted rows as a capture decodes them."""
    schema = next(each for each in reader.of(TableSchema) if each.table_id == number)
    rows = [(row.sizes, row.payload) for row in reader.rows if row.table_id == number]
    return decode_payloads(schema.columns, rows, rules)


def declared(reader: Reader, number: int) -> tuple[Column, ...]:
    schema = next(each for each in reader.of(TableSchema) if each.table_id == number)
    return parse_columns(schema.columns)


def selected(
    server: CaptureServer,
    table: ContractTable,
    columns: Sequence[Column],
    rules: DecodeRules,
    rows_a_block: int = 3,
) -> pa.RecordBatch:
    """Return a table's rows as SELECT gives them in blocks."""
    names = ", ".join(f"t.{identifier(column.name)}" for column in columns)
    statement = f"SELECT {names} FROM {table.name} t ORDER BY t.id"
    with closing(server.connect(server.database)) as transport:
        reader = block_reader(transport, rules, table.name)
        batches = list(reader.blocks(statement, (), columns, rows_a_block))
    assert all(batch.num_rows <= rows_a_block for batch in batches)
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _problem(
    server: CaptureServer, reader: Reader, table: ContractTable, number: int, case: TypeCase
) -> str:
    """Say what is wrong with a type, so that one does not hide the others."""
    for rules in RULES:
        wanted = captured(reader, number, rules)
        try:
            found = selected(server, table, declared(reader, number), rules)
        except Exception as reason:  # noqa: BLE001 - judged type by type
            return f"cannot be fetched: {reason!r}"
        if wanted.num_rows != len(case.values) or found.schema != wanted.schema or found != wanted:
            return f"the log gives {wanted.to_pylist()}, SELECT {found.to_pylist()}"
    return ""


@pytest.mark.slow
@pytest.mark.assumption(85, 113)
def test_what_select_gives_in_blocks_is_what_the_log_gives_of_every_type(server: CaptureServer) -> None:
    tables = [server.create_table({"id": "integer", "v": case.type_text}) for case in TYPE_CASES]
    with server.session(*tables) as session, server.writer() as writer:
        for table, case in zip(tables, TYPE_CASES, strict=True):
            rows = [{"id": str(key), "v": value} for key, value in enumerate(case.values, 1)]
            writer.insert_all(table, rows)
        reader = Reader(session)
        reader.until_ended(transactions=len(TYPE_CASES))
    assert [
        f"{case.type_text}: {problem}"
        for number, (table, case) in enumerate(zip(tables, TYPE_CASES, strict=True))
        if (problem := _problem(server, reader, table, number, case))
    ] == []


KINDS = {
    "id": "integer",
    "a": "varchar(40,0)",
    "b": "boolean",
    "c": "lvarchar(200)",
    "d": "decimal(9,2)",
    "e": "lvarchar(9000)",
    "f": "date",
    "g": "nvarchar(9,0)",
    "h": "char(7)",
}
ROWS = [
    ("1", "größe", "t", "lang", "-1.50", "x" * 5000, "2024-03-15", "ü", "a  b"),
    ("2", None, None, None, None, None, None, None, None),
    ("3", "", "f", "", "0.00", "", "0001-01-01", " ", ""),
    ("4", "a ", "t", " ", "9.99", "ü" * 3000, "9999-12-31", "", "ñ"),
]


@pytest.mark.assumption(85)
@pytest.mark.parametrize("order", ["as declared", "the other way round"])
def test_columns_of_all_kinds_side_by_side_are_cut_out_of_their_row(
    server: CaptureServer, order: str
) -> None:
    table = server.create_table(KINDS)
    with server.session(table) as session, server.writer() as writer:
        writer.insert_all(table, [dict(zip(KINDS, values, strict=True)) for values in ROWS])
        reader = Reader(session)
        reader.until_ended()
    columns = declared(reader, 0)[:: 1 if order == "as declared" else -1]
    wanted = captured(reader, 0, DecodeRules()).select([column.name for column in columns])
    assert selected(server, table, columns, DecodeRules()) == wanted


@pytest.mark.assumption(86, 114)
def test_long_answers_come_whole_with_the_blanks_at_the_end_of_their_texts(
    server: CaptureServer,
) -> None:
    table = server.create_table({"id": "integer", "v": "varchar(255,0)"})
    texts = ["x" * (200 + number % 50) + "  " for number in range(400)]
    with server.writer() as writer:
        writer.insert_all(table, [{"id": str(n), "v": text} for n, text in enumerate(texts)])
    columns = (Column("id", "integer"), Column("v", "varchar(255,0)"))
    found = selected(server, table, columns, DecodeRules(), 1000)
    assert found.column(1).to_pylist() == texts


KEYS = {
    "integer": ("-7", "3", "2147483647"),
    "bigint": ("-9223372036854775807", "0", "4294967296"),
    "int8": ("-4294967296", "0", "4294967296"),
    "decimal(16,2)": ("-99999999999999.99", "0.00", "1.50"),
    "date": ("0001-01-01", "2024-02-29", "9999-12-31"),
    "datetime year to second": ("0001-01-01 00:00:00", "2024-03-15 07:05:06", "9999-12-31 23:59:59"),
    "datetime year to fraction(3)": ("2024-03-15 07:05:06.124", "2024-03-15 07:05:06.125"),
    "char(12)": ("", "ab", "zwölf"),
    "varchar(40,0)": ("a", "b", "ñ"),
    "lvarchar(300)": ("a", "b", "ñ"),
}


@pytest.mark.assumption(87)
def test_a_key_goes_back_as_it_was_fetched_and_the_next_rows_are_those_behind_it(
    server: CaptureServer,
) -> None:
    problems = []
    for type_text, keys in KEYS.items():
        table = server.create_table({"id": "integer", "k": type_text})
        with server.writer() as writer:
            writer.insert_all(table, [{"id": str(n), "k": key} for n, key in enumerate(keys)])
        columns = (Column("id", "integer"), Column("k", type_text))
        statement = f"SELECT id, k FROM {table.name}"
        found: list[int] = []
        with closing(server.connect(server.database)) as transport:
            reader = block_reader(transport, DecodeRules(), table.name)
            arguments: tuple[object, ...] = ()
            for _ in range(len(keys) + 1):
                behind = "WHERE k > ?" if arguments else ""
                blocks = reader.blocks(f"{statement} {behind} ORDER BY k", arguments, columns, 1)
                batch = next(blocks, None)
                if batch is None:
                    break
                found += batch.column(0).to_pylist()
                arguments = (key_argument(type_text, str(blocks.last_row[1])),)
                blocks.close()
        if found != list(range(len(keys))):
            problems.append(f"{type_text}: {found}")
    assert problems == []
