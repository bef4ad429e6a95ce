"""Rows of many tables, decoded by type, are what each table's own decoder makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from capture_client.values.test_round_trips import TYPES, has_nulls, with_null
from harness.capture.decoding import EncodedRow, encode_rows
from harness.runs.examples import examples
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.values import MixedRows, MixedRowsDecoder, TableDecoder, mixed_rows
from informix_capture_client.values.table_decoder import Payloads

Rows = Sequence[tuple[int, EncodedRow]]
MARGIN = b"\xee" * 3


def mixed(rows: Rows) -> MixedRows:
    """Lay rows apart in one buffer, each behind the sizes of its variable columns."""
    data, places = b"", []
    for table, (sizes, payload) in rows:
        stated = b"".join(size.to_bytes(4) for size in sizes)
        sizes_at = len(data) + len(MARGIN)
        places.append((table, sizes_at, sizes_at + len(stated), len(payload)))
        data += MARGIN + stated + payload
    columns = np.array(places, np.int64).reshape(-1, 4).T
    return MixedRows(data + MARGIN, *columns)


def by_their_own(decoders: Mapping[int, TableDecoder], rows: Rows) -> dict[int, list[pa.Array]]:
    """Decode the rows of each table by themselves."""
    found: dict[int, list[pa.Array]] = {}
    for number, decoder in decoders.items():
        mine = mixed([row for row in rows if row[0] == number])
        if len(mine.tables):
            payloads = mixed_rows.payloads(mine, decoder, str)
            found[number] = decoder.decode(payloads).columns
    return found


@st.composite
def tables_and_rows(draw: st.DrawFn) -> tuple[dict[int, TableDecoder], Rows]:
    numbers = draw(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True))
    decoders, rows = {}, list[tuple[int, EncodedRow]]()
    for number in numbers:
        kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=6))
        pairs = {
            f"c{n}": with_null(TYPES[kind]) if has_nulls(kind) else TYPES[kind]
            for n, kind in enumerate(kinds)
        }
        drawn = draw(st.lists(st.fixed_dictionaries(pairs), max_size=6))
        declared = ", ".join(f"c{n} {kind}" for n, kind in enumerate(kinds))
        values = [{name: pair[0] for name, pair in row.items()} for row in drawn]
        described, encoded = encode_rows(declared, values)
        decoders[number] = TableDecoder(described, f"t{number}")
        rows += [(number, row) for row in encoded]
    return decoders, draw(st.permutations(rows))


@pytest.mark.slow
@given(
    drawn=tables_and_rows(), at_once=st.sampled_from([1, 3, 8192]), alone=st.sampled_from([1, 2, 2048])
)
@examples(200, HealthCheck.data_too_large, HealthCheck.too_slow)
def test_rows_of_any_tables_are_what_each_tables_decoder_makes_of_them(
    drawn: tuple[dict[int, TableDecoder], Rows], at_once: int, alone: int
) -> None:
    decoders, rows = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mixed_rows, "_AT_ONCE", at_once)
        patch.setattr(mixed_rows, "_WORTH_A_CALL", alone)
        found = MixedRowsDecoder(decoders).by_table(mixed(rows), str)
    assert found == by_their_own(decoders, rows)
    for columns in found.values():
        for column in columns:
            column.validate(full=True)


@given(drawn=tables_and_rows())
@examples(100, HealthCheck.data_too_large, HealthCheck.too_slow)
def test_each_cell_names_its_row_its_table_and_its_column(
    drawn: tuple[dict[int, TableDecoder], Rows],
) -> None:
    decoders, rows = drawn
    expected = by_their_own(decoders, rows)
    places = {number: [at for at, row in enumerate(rows) if row[0] == number] for number in decoders}
    seen = 0
    for cells in MixedRowsDecoder(decoders).cells(mixed(rows), str):
        for slot, (table, column) in enumerate(zip(cells.tables, cells.columns, strict=True)):
            begin, end = cells.bounds[slot : slot + 2]
            assert cells.rows[begin:end].tolist() == places[table]
            assert cells.values[begin:end] == expected[table][column]
            seen += end - begin
    assert seen == sum(len(columns) * len(columns[0]) for columns in expected.values())


WIDE, NARROW = "a integer, b date, v varchar(10,0)", "d date, v varchar(10,0), w varchar(5,0)"
GOOD = {
    0: ([3], bytes.fromhex("00000001 00000001") + b"\x02ab"),
    1: ([2, 1], bytes.fromhex("00000001") + b"\x01a\x00"),
}


def decoded(*rows: tuple[int, EncodedRow]) -> dict[int, list[pa.Array]]:
    decoders = {0: TableDecoder(WIDE, "wide"), 1: TableDecoder(NARROW, "narrow")}
    mixture = [(0, GOOD[0]), (1, GOOD[1]), *rows]
    return MixedRowsDecoder(decoders).by_table(mixed(mixture), "row {}".format)


BAD = [
    (0, ([3], bytes.fromhex("00000001 002d2481") + b"\x02ab"), r"wide\.b at row 2 has a DATE"),
    (1, ([2, 1], bytes.fromhex("002d2481") + b"\x01a\x00"), r"narrow\.d at row 2 has a DATE"),
    (0, ([3], bytes.fromhex("00000001 00000001") + b"\x03ab"), r"wide\.v at row 2 has a VARCHAR"),
    (1, ([2, 1], bytes.fromhex("00000001") + b"\x01a\x05"), r"narrow\.w at row 2 has a VARCHAR"),
    (1, ([2, 9], bytes.fromhex("00000001") + b"\x01a\x00"), "narrow at row 2 has 7 bytes.* need 15"),
    (0, ([3], bytes.fromhex("00000001 00000001") + b"\x02abc"), "wide at row 2 has 12 bytes.* need 11"),
    (
        1,
        ([2], bytes.fromhex("00000001") + b"\x01a\x00"),
        "narrow at row 2 is too short for the sizes of its 2",
    ),
]


@pytest.mark.parametrize(("table", "row", "told"), BAD)
def test_what_is_wrong_is_named_by_table_column_and_row(table: int, row: EncodedRow, told: str) -> None:
    with pytest.raises(ProtocolViolation, match=told):
        decoded((table, row))
    with pytest.raises(ProtocolViolation, match=told.replace("row 2", "row 3")):
        decoded((1 - table, GOOD[1 - table]), (table, row))


def test_columns_of_one_type_are_decoded_by_one_call_whatever_their_tables() -> None:
    decoders = {number: TableDecoder(f"a integer, c{number} date") for number in range(20)}
    rows = [(number, ([], bytes(8))) for number in range(20)]
    assert len(list(MixedRowsDecoder(decoders).cells(mixed(rows), str))) == 2


def test_no_rows_are_no_columns() -> None:
    assert MixedRowsDecoder({0: TableDecoder(WIDE)}).by_table(mixed([]), str) == {}


@pytest.mark.parametrize(("table", "row", "told"), BAD)
def test_a_cell_that_is_wrong_is_named_by_its_place_among_rows_in_no_order(
    table: int, row: EncodedRow, told: str
) -> None:
    decoders = {0: TableDecoder(WIDE, "wide"), 1: TableDecoder(NARROW, "narrow")}
    mixture = [(1, GOOD[1]), (0, GOOD[0]), (table, row), (1, GOOD[1]), (0, GOOD[0])]
    with pytest.raises(ProtocolViolation, match=told):
        list(MixedRowsDecoder(decoders).cells(mixed(mixture), "row {}".format))


def test_rows_of_one_table_are_decoded_so_many_at_once_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mixed_rows, "_AT_ONCE", 3)
    monkeypatch.setattr(mixed_rows, "_WORTH_A_CALL", 2)
    decoder, sizes = TableDecoder("a integer"), list[int]()
    decode = decoder.decode

    def counted(rows: Payloads, where: Callable[[int], str]) -> pa.RecordBatch:
        sizes.append(len(rows.starts))
        return decode(rows, where)

    monkeypatch.setattr(decoder, "decode", counted)
    rows = [(0, ([], number.to_bytes(4))) for number in range(8)]
    (columns,) = MixedRowsDecoder({0: decoder}).by_table(mixed(rows), str).values()
    assert (sizes, columns[0].to_pylist()) == ([3, 3, 2], list(range(8)))
