"""Rows as JSON say exactly what shape=rows says, for any tables, columns and values."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from capture_client.values.test_round_trips import EXTREMES, TYPES, has_nulls, with_null
from harness.capture.decoding import EncodedRow, encode_rows
from harness.capture.shaped import Shaped, delivery_of
from harness.capture.streams import begin, commit, feed_chunks, row, truncate
from harness.capture.tables import make_table
from harness.runs.examples import examples
from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.positions import Position
from informix_capture_client.records.records import RecordKind, TableSchema
from informix_capture_client.shapes import json_rows
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions
from informix_capture_client.values.table_decoder import TableDecoder

Row = dict[str, Any]
Change = tuple[RecordKind, int, EncodedRow]
JSON = RowForm(shape="json", truncate="emit")


def span(text: str) -> datetime.timedelta:
    """Read an interval as Informix prints it."""
    days, _, clock = text.removeprefix("-").partition(" ")
    hours, minutes, seconds = clock.split(":")
    whole, _, fraction = seconds.partition(".")
    found = datetime.timedelta(int(days), int(whole), int(fraction), 0, int(minutes), int(hours))
    return -found if text.startswith("-") else found


READ: dict[str, Callable[[Any], object]] = {
    "double": float,
    "float": lambda value: float(np.float32(value)),
    "date32[day]": datetime.date.fromisoformat,
    "timestamp[us]": datetime.datetime.fromisoformat,
    "duration[us]": span,
    "binary": base64.b64decode,
}


def read_back(text: str | None, schema: pa.Schema) -> Row | None:
    """Read a text as somebody does who knows the columns."""
    if text is None:
        return None
    found = json.loads(text, parse_float=Decimal)
    assert list(found) == schema.names
    return {
        field.name: None
        if found[field.name] is None
        else READ.get(str(field.type), lambda value: value)(found[field.name])
        for field in schema
    }


class Tables:
    """Tables with what a server says of them."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.tables: list[Table] = [make_table(f"t{n}", text) for n, text in enumerate(columns)]
        self.described = [encode_rows(text, [])[0] for text in columns]

    def encoder(self, row_form: RowForm) -> Shaped:
        made = Shaped(self.tables, DecodeRules(), row_form)
        for number, described in enumerate(self.described):
            decoder = TableDecoder(described)
            made.announce(
                TableSchema(number, decoder.fixed_bytes, 1, decoder.variable_count, described)
            )
        return made

    def delivered(self, row_form: RowForm, stream: bytes) -> list[Row]:
        made = self.encoder(row_form)
        found: list[Row] = []
        for rows in made.delivered(made.encode(transactions(stream))):
            rows.validate(full=True)
            assert rows.schema == made.schema
            found += rows.to_pylist()
        return found

    def schema(self, name: str) -> pa.Schema:
        [table] = [table for table in self.tables if str(table.name) == name]
        return delivery_of([table], RowForm(metadata="minimal")).schema


def transactions(stream: bytes) -> list[CommittedTransactions]:
    events = feed_chunks(TransactionAssembler(Position(0, 0)), [stream])
    return [event for event in events if isinstance(event, CommittedTransactions)]


def records(changes: Sequence[Change]) -> bytes:
    """Return one transaction."""
    rows = [
        row(100 + place, 1, payload, kind, table, sizes)
        if kind != RecordKind.TRUNCATE
        else truncate(100 + place, 1, table)
        for place, (kind, table, (sizes, payload)) in enumerate(changes)
    ]
    return begin(1, 1, 5, 501) + b"".join(rows) + commit(90_000, 1, 7)


def data_schema(tables: Tables, name: str) -> pa.Schema:
    return pa.schema([field for field in tables.schema(name) if not field.name.startswith("_")])


def expected(rows: Sequence[Row], count: int) -> list[tuple[str, str, Row | None, Row | None]]:
    """Return kind, table and both images of each change, of rows in the default shape."""
    found, before = [], None
    for change in rows:
        kind, table = change["_change_type"], change["_table"]
        data = {name: value for name, value in change.items() if not name.startswith("_")}
        image = data if count == 1 else data[table.rpartition(".")[2]]
        if kind == "update_preimage":
            before = image
        elif kind == "update_postimage":
            found.append(("update", table, before, image))
        else:
            images = {"insert": (None, image), "delete": (image, None)}.get(kind, (None, None))
            found.append((kind, table, *images))
    return found


@st.composite
def tables_and_changes(draw: st.DrawFn) -> tuple[Tables, list[Change]]:
    columns, per_table = [], []
    for _ in range(draw(st.integers(1, 4))):
        kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=6))
        names = [f"c{n}" if n % 3 else f'Odd, {n} "name\\ü"' for n in range(len(kinds))]
        declared = zip(names, kinds, strict=True)
        pairs = {n: with_null(TYPES[k]) if has_nulls(k) else TYPES[k] for n, k in declared}
        declared = zip(names, kinds, strict=True)
        columns.append(", ".join(f'"{n.replace(chr(34), chr(34) * 2)}" {k}' for n, k in declared))
        drawn = draw(st.lists(st.fixed_dictionaries(pairs), min_size=1, max_size=5))
        values = [{name: pair[0] for name, pair in each.items()} for each in drawn]
        per_table.append(encode_rows(columns[-1], values)[1])
    changes: list[Change] = []
    for table in draw(st.lists(st.integers(0, len(columns) - 1), max_size=12)):
        one = st.sampled_from(per_table[table])
        kind = draw(
            st.sampled_from(
                [RecordKind.INSERT, RecordKind.DELETE, RecordKind.UPDAFT, RecordKind.TRUNCATE]
            )
        )
        if kind == RecordKind.UPDAFT:
            changes.append((RecordKind.UPDBEF, table, draw(one)))
        changes.append((kind, table, draw(one)))
    return Tables(columns), changes


@pytest.mark.slow
@given(drawn=tables_and_changes(), at_once=st.sampled_from([1, 5, 1 << 19]))
@examples(200, HealthCheck.data_too_large, HealthCheck.too_slow)
def test_both_images_of_a_change_are_the_rows_of_the_default_shape(
    drawn: tuple[Tables, list[Change]], at_once: int
) -> None:
    tables, changes = drawn
    stream = records(changes)
    rows = tables.delivered(RowForm(truncate="emit"), stream)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_rows, "_CELLS_AT_ONCE", at_once)
        found = tables.delivered(JSON, stream)
    seen = [
        (
            change["_change_type"],
            change["_table"],
            *(read_back(change[image], data_schema(tables, change["_table"])) for image in IMAGES),
        )
        for change in found
    ]
    assert seen == expected(rows, len(tables.tables))


IMAGES = ("before", "after")


@pytest.mark.parametrize("type_text", EXTREMES)
def test_the_ends_of_a_types_range_are_read_back(type_text: str) -> None:
    values = EXTREMES[type_text]
    tables = Tables([f"a {type_text}"])
    _, encoded = encode_rows(f"a {type_text}", [{"a": value} for value in values])
    found = tables.delivered(JSON, records([(RecordKind.INSERT, 0, each) for each in encoded]))
    schema = data_schema(tables, "stores:informix.t0")
    images = [read_back(change["after"], schema) for change in found]
    assert images == [{"a": value} for value in values]


def texts(columns: str, *rows: Row) -> list[str]:
    _, encoded = encode_rows(columns, rows)
    changes = [(RecordKind.INSERT, 0, each) for each in encoded]
    return [change["after"] for change in Tables([columns]).delivered(JSON, records(changes))]


WRITTEN = [
    ("integer", -7, "-7"),
    ("bigint", 2**63 - 1, "9223372036854775807"),
    ("decimal(16,2)", Decimal("12.50"), "12.50"),
    ("decimal(16,2)", Decimal(0), "0.00"),
    ("decimal(32,7)", Decimal("1E-7"), "0.0000001"),
    ("decimal(32,20)", Decimal("1E-20"), "0.00000000000000000001"),
    ("decimal(32,20)", Decimal(0), "0.00000000000000000000"),
    ("decimal(16)", Decimal("1.5"), '"1.5"'),
    ("float", 0.1, "0.1"),
    ("float", 1e20, "1e+20"),
    ("float", math.inf, '"Infinity"'),
    ("float", -math.inf, '"-Infinity"'),
    ("smallfloat", 0.1, "0.1"),
    ("boolean", True, "true"),
    ("date", datetime.date(2024, 1, 31), '"2024-01-31"'),
    (
        "datetime year to fraction(3)",
        datetime.datetime(2024, 1, 31, 7, 5, 0, 250_000),
        '"2024-01-31T07:05:00.250000"',
    ),
    ("datetime hour to minute", "07:05", '"07:05"'),
    ("interval day(3) to fraction(5)", "-3 04:05:06.70000", '"-3 04:05:06.700000"'),
    ("interval hour to minute", "-0:01", '"-0 00:01:00.000000"'),
    ("interval year to month", "-1-02", "-14"),
    ("varchar(40,0)", "", '""'),
    ("varchar(40,0)", 'say "hi" \\ \n\x01\x7f é', '"say \\"hi\\" \\\\ \\n\\u0001\x7f é"'),
    # each by itself: one of them makes the whole text be looked at
    ("varchar(40,0)", "a\x01", '"a\\u0001"'),
    ("varchar(40,0)", "a\x1f", '"a\\u001f"'),
    ("varchar(40,0)", "\n", '"\\n"'),
    ("varchar(40,0)", 'a"', '"a\\""'),
    ("varchar(40,0)", "a\\b", '"a\\\\b"'),
    ("char(4)", "ab", '"ab"'),
    ("blob", bytes(4) + b"\1" * 72, f'"AAAAAAEB{"AQEB" * 23}AQ=="'),
    ("integer", None, "null"),
    ("varchar(40,0)", None, "null"),
]


@pytest.mark.parametrize(("type_text", "value", "text"), WRITTEN)
def test_a_value_is_written_as(type_text: str, value: object, text: str) -> None:
    assert texts(f"a {type_text}", {"a": value}) == [f'{{"a":{text}}}']


def test_columns_are_in_table_order_and_names_are_escaped() -> None:
    columns = 'note varchar(20,0), "Odd ""name"" \\ é" integer, id integer'
    (text,) = texts(columns, {"note": "x", 'Odd "name" \\ é': 1, "id": 2})
    assert text == '{"note":"x","Odd \\"name\\" \\\\ é":1,"id":2}'


def test_a_text_of_quotes_among_others_changes_none_of_them() -> None:
    notes = ["plain", '"', None, "", "\\", "plain again", 'a"b"c']
    found = texts("note varchar(20,0)", *({"note": note} for note in notes))
    assert [json.loads(text)["note"] for text in found] == notes


def test_the_schema_is_the_same_for_any_tables() -> None:
    one, other = Tables(["a integer"]), Tables(["b date", "c varchar(9,0)", "d float"])
    assert one.encoder(JSON).schema == other.encoder(JSON).schema
    minimal = RowForm(shape="json", metadata="minimal")
    assert one.encoder(minimal).schema.names == [
        "before",
        "after",
        "_change_type",
        "_commit_version",
        "_commit_timestamp",
        "_change_ordinal",
        "_table",
    ]


def test_an_update_is_one_row_at_the_place_of_its_second_image() -> None:
    tables = Tables(["a integer"])
    one, two = encode_rows("a integer", [{"a": 1}, {"a": 2}])[1]
    changes = [(RecordKind.UPDBEF, 0, one), (RecordKind.UPDAFT, 0, two), (RecordKind.DELETE, 0, two)]
    found = tables.delivered(JSON, records(changes))
    assert [(c["before"], c["after"], c["_change_ordinal"], c["_change_seq"]) for c in found] == [
        ('{"a":1}', '{"a":2}', 1, 101),
        ('{"a":2}', None, 2, 102),
    ]


def test_without_before_images_an_update_has_its_new_row_only_and_a_delete_its_old_one() -> None:
    tables = Tables(["a integer"])
    one, two = encode_rows("a integer", [{"a": 1}, {"a": 2}])[1]
    changes = [(RecordKind.UPDBEF, 0, one), (RecordKind.UPDAFT, 0, two), (RecordKind.DELETE, 0, two)]
    found = tables.delivered(RowForm(shape="json", before_image=False), records(changes))
    images = [(change["before"], change["after"]) for change in found]
    assert images == [(None, '{"a":2}'), ('{"a":2}', None)]


def test_a_transaction_of_nothing_but_a_truncate_has_neither_image() -> None:
    (change,) = Tables(["a integer"]).delivered(JSON, records([(RecordKind.TRUNCATE, 0, ([], b""))]))
    assert (change["_change_type"], change["before"], change["after"]) == ("truncate", None, None)


def test_a_value_that_cannot_be_read_is_named() -> None:
    tables = Tables(["a integer", "d date"])
    bad = bytes.fromhex("002d2481")
    with pytest.raises(ProtocolViolation, match=r"t1\.d at .* has a DATE"):
        tables.delivered(
            JSON, records([(RecordKind.INSERT, 0, ([], bytes(4))), (RecordKind.INSERT, 1, ([], bad))])
        )


def test_a_table_that_is_described_anew_in_another_order_is_read_by_the_new_one() -> None:
    tables = Tables(["a integer, b integer"])
    encoder = tables.encoder(JSON)
    _, [row_of_1_2] = encode_rows("a integer, b integer", [{"a": 1, "b": 2}])
    found = transactions(records([(RecordKind.INSERT, 0, row_of_1_2)]))
    for after in ('{"a":1,"b":2}', '{"a":2,"b":1}'):
        (batch,) = encoder.delivered(encoder.encode(found))
        assert batch["after"].to_pylist() == [after]
        encoder.announce(TableSchema(0, 8, 1, 0, "b integer, a integer"))
