"""Values of any kind: what a SELECT in blocks gives is what the log gives, over both transports."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_client.values.test_round_trips import TYPES, UNICODE, texts, with_null
from harness.capture.decoding import decode_rows, encode_rows
from harness.runs.examples import examples
from harness.servers.emulated import Emulated, emulated_world
from informix_capture_client.choices import DecodeRules
from informix_capture_client.locales import codec_of
from informix_capture_client.row_fetch import block_reader, in_database_code_set
from informix_capture_client.transport.base import Transport
from informix_capture_client.values import parse_columns
from informix_emulator import keep_rows
from odbc_driver.build import build_drivers

RULES = (
    DecodeRules(),
    DecodeRules(keep_blanks=True, intervals="string", floating_decimal="double"),
)
LATIN = "en_US.8859-1"
UTF8 = "en_US.utf8"
KINDS = {name: values for name, values in TYPES.items() if "serial" not in name}


@dataclass
class World:
    """One server with two databases, and both ways to each."""

    emulated: Emulated
    ways: Mapping[str, Mapping[str, Transport]]
    tables: dict[str, str] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def equal(
        self, locale: str, columns: str, rows: list[dict[str, object]], rules: DecodeRules
    ) -> None:
        """Write rows, and hold what both transports read to what a capture reads."""
        batch = next(self.numbers)
        declared = f"id integer, batch integer, {columns}"
        table = self._table(locale, declared)
        whole = [{"id": n, "batch": batch, **row} for n, row in enumerate(rows)]
        with self.emulated.server.transaction() as transaction:
            for row in whole:
                transaction.insert(table, row)
        described, encoded = encode_rows(declared, whole, locale)
        wanted = decode_rows(described, encoded, rules)
        names = ", ".join(column.name for column in parse_columns(described))
        statement = f"SELECT {names} FROM {table.partition('.')[2]} WHERE batch = ? ORDER BY id"
        for way, transport in self.ways[locale].items():
            reader = block_reader(transport, rules, "t")
            blocks = reader.blocks(statement, (batch,), parse_columns(described), len(rows))
            assert list(blocks) == [wanted], way

    def _table(self, locale: str, columns: str) -> str:
        key = f"{locale} {columns}"
        if key not in self.tables:
            database = "latin" if locale == LATIN else "stores"
            self.tables[key] = f"{database}:informix.v{len(self.tables)}"
            self.emulated.server.create_table(self.tables[key], columns)
        return self.tables[key]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    drivers = {"sqli": "", "odbc": str(build_drivers().narrow)}
    with emulated_world() as emulated, ExitStack() as opened:
        keep_rows(emulated.server)
        ways: dict[str, dict[str, Transport]] = {UTF8: {}, LATIN: {}}
        for database, locale in (("stores", UTF8), ("latin", LATIN)):
            emulated.server.create_database(database, logged=True, locale=locale)
            for way, driver in drivers.items():
                settings = replace(emulated.settings(database, locale), driver=driver)
                one = replace(emulated, driver=driver).open(in_database_code_set(settings))
                ways[locale][way] = opened.enter_context(closing(one))
        yield World(emulated, ways)


@pytest.mark.parametrize("type_text", KINDS)
@given(data=st.data(), rules=st.sampled_from(RULES))
@examples(10)
def test_values_of_every_type(
    world: World, type_text: str, data: st.DataObject, rules: DecodeRules
) -> None:
    pairs = data.draw(st.lists(with_null(KINDS[type_text]), min_size=1, max_size=8))
    world.equal(UTF8, f"v {type_text}", [{"v": value} for value, _ in pairs], rules)


@given(data=st.data())
@examples(15)
def test_rows_of_a_table_of_any_columns(world: World, data: st.DataObject) -> None:
    kinds = ["varchar(60,0)", "boolean", "lvarchar(3000)", "decimal(12,3)", "nvarchar(255,10)"]
    kinds += ["datetime year to fraction(5)", "char(12)", "lvarchar(3000)", "bigint", "blob"]
    row = st.tuples(*(with_null(KINDS[kind]).map(lambda pair: pair[0]) for kind in kinds))
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(kinds))
    named = [{f"c{n}": value for n, value in enumerate(values)} for values in rows]
    world.equal(UTF8, columns, named, DecodeRules())


@given(data=st.data())
@examples(15)
def test_texts_of_another_code_set(world: World, data: st.DataObject) -> None:
    codec = codec_of(LATIN)
    alphabet = st.characters(codec=codec, exclude_characters="\0")
    kinds = {"c": "char(20)", "v": "varchar(30,0)", "l": "lvarchar(200)", "n": "lvarchar(4000)"}
    row = st.fixed_dictionaries(
        {name: with_null(texts(alphabet, 20, codec)).map(lambda pair: pair[0]) for name in kinds}
    )
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    world.equal(LATIN, columns, rows, DecodeRules(codec=codec))


@given(keys=st.lists(texts(UNICODE, 30).map(lambda pair: pair[0]), min_size=1, max_size=5))
@examples(15)
def test_a_text_that_was_fetched_finds_its_row_again(world: World, keys: list[str]) -> None:
    table = world._table(UTF8, "id integer, batch integer, k varchar(120,0)")
    batch = next(world.numbers)
    with world.emulated.server.transaction() as transaction:
        for number, key in enumerate(keys):
            transaction.insert(table, {"id": number, "batch": batch, "k": key})
    columns = parse_columns("id integer, k varchar(120,0)")
    select = f"SELECT id, k FROM {table.partition('.')[2]} WHERE batch = ?"
    for transport in world.ways[UTF8].values():
        reader = block_reader(transport, DecodeRules(), "t")
        blocks = reader.blocks(f"{select} ORDER BY id", (batch,), columns, 1)
        for number, _ in enumerate(blocks):
            key = blocks.last_row[1]
            assert key == keys[number]
            again = reader.blocks(f"{select} AND k = ? AND id = ?", (batch, key, number), columns, 1)
            assert [found.num_rows for found in again] == [1]
