"""Tampered targets are found, to the key, while both sides change; a repair or a resync mends them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.lake.ledger import Key, Ledger, LedgerTable, Row, ledger
from harness.lake.mirroring import MirrorRun, is_caught_up, overwrite, until
from harness.lake.put_back import PutBack
from harness.runs.examples import PROFILE
from harness.runs.tiers import rest_in_all
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.requests import REPAIR, RESYNC, VERIFY, Answer, Request, RequestFolder

pytestmark = pytest.mark.slow

QUICKLY = {"snapshotParallelism": "8", "snapshotChunkRows": "7"}
EACH_KIND = "each kind of key"
MOST_SEEDS = 200 if PROFILE == "thorough" else 20
SEEDS = [
    *range(4),
    *(pytest.param(seed, marks=pytest.mark.only_in_all) for seed in range(4, MOST_SEEDS)),
]


class Tampered:
    """Changes targets behind the mirror's back, and knows the keys."""

    def __init__(self, run: MirrorRun, made: Ledger) -> None:
        self.run, self.made = run, made
        self.commit = run.batches[-1].commit
        self.keys: dict[tuple[str, Key], str] = {}

    def tamper(self, table: LedgerTable) -> None:
        """Remove a row, add ghosts, and change one value of a row in each column."""
        place, draw = str(self.run.lake / table.name), self.made.random
        rows = pa.table(DeltaTable(place).scan().read_all())
        schema, found = rows.schema, rows.to_pylist()
        if len(found) < 3:
            return
        draw.shuffle(found)
        kept, gone = found[1:], found[0]
        self._note(table, gone, "missing")
        for row, name in zip(kept, [n for n in schema.names if n not in table.key], strict=False):
            row[name] = None if row[name] is not None else _other(schema.field(name).type)
            self._note(table, row, "different")
        for number in range(draw.choice([1, 1, 40])):  # a missed TRUNCATE leaves many
            ghost = {**kept[0], **self._fresh_key(table, schema, number)}
            kept.append(ghost)
            self._note(table, ghost, "extra")
        overwrite(self.run.lake / table.name, pa.Table.from_pylist(kept, schema))

    def _fresh_key(self, table: LedgerTable, schema: pa.Schema, number: int) -> Row:
        name = table.key[-1]
        kind = schema.field(name).type
        if pa.types.is_string(kind) or kind == pa.string_view():
            return {name: f"zz{number}"}
        if pa.types.is_date(kind):
            return {name: date(2079, 1, 1) + timedelta(days=number)}
        if pa.types.is_timestamp(kind):
            return {name: datetime(2079, 1, 1) + timedelta(days=number)}
        if pa.types.is_decimal(kind):
            return {name: pa.scalar(Decimal(200 + number), kind).as_py()}
        return {name: (30_000 if kind == pa.int16() else 1_000_000) + number}

    def _note(self, table: LedgerTable, row: Row, what: str) -> None:
        self.keys[table.name, tuple(row[name] for name in table.key)] = what

    def untouched(self) -> dict[tuple[str, Key], str]:
        """Return the tampered keys that no transaction has changed since."""
        tables = {table.name: table for table in self.made.tables}
        later = [each for each in self.made.changes if each.commit > self.commit]
        touched = {
            (each.table, tuple(each.row[name] for name in tables[each.table].key))
            for each in later
            if each.row is not None
        }
        emptied = {each.table for each in later if each.row is None}
        return {
            key: what for key, what in self.keys.items() if key not in touched and key[0] not in emptied
        }


def _other(kind: pa.DataType) -> Any:
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return datetime(2001, 2, 3) if pa.types.is_timestamp(kind) else date(2001, 2, 3)
    return True if pa.types.is_boolean(kind) else pa.scalar("0", pa.string()).cast(kind).as_py()


def asked(run: MirrorRun, kind: str, *tables: LedgerTable) -> tuple[RequestFolder, Request]:
    assert run.start is not None
    request = Request(kind=kind, tables=tuple(f"informix.{table.name}" for table in tables))
    spool = Path(run.settings.checkpoint) / "spool"
    folder = RequestFolder(spool / run.start["stream"])
    folder.submit(request)
    return folder, request


def answered(
    run: MirrorRun, step: Callable[[], bool], made: Ledger, kind: str, changes: int = 2
) -> tuple[Request, Answer]:
    """Let a request be processed while the tables change."""
    folder, request = asked(run, kind, *made.tables)
    until(step_with(step, made, changes), lambda: folder.answer(request.id) is not None)
    answer = folder.answer(request.id)
    assert answer is not None
    assert answer.problems == {}
    until(step, lambda: StreamOffset.from_json(run.start).position.place >= answer.place)
    return request, answer


def step_with(step: Callable[[], bool], made: Ledger, changes: int) -> Callable[[], bool]:
    def both() -> bool:
        made.change(changes)
        return step()

    return both


def reported(run: MirrorRun, request: Request, made: Ledger) -> Iterator[tuple[tuple[str, Key], str]]:
    tables = {table.name: table for table in made.tables}
    if not (run.lake / "_informix_cdc_differences").exists():
        return
    for row in run.rows("_informix_cdc_differences"):
        if row["request"] == request.id:
            table = tables[row["target"]]
            yield (table.name, tuple(map(str, json.loads(row["key"]).values()))), row["what"]


def as_text(keys: dict[tuple[str, Key], str]) -> dict[tuple[str, Key], str]:
    return {(table, tuple(map(str, key))): what for (table, key), what in keys.items()}


@pytest.mark.parametrize("seed", rest_in_all([EACH_KIND, *SEEDS]))
def test_a_verification_finds_what_was_tampered_with_and_nothing_else(
    seed: int | str, tmp_path: Path
) -> None:
    with ledger(0, 0) if seed == EACH_KIND else ledger(int(seed), 5) as (made, listening):
        if seed == EACH_KIND:
            made.add_a_table_for_each_kind_of_key()
        made.change(120 if seed == EACH_KIND else 60)
        run = MirrorRun(tmp_path, listening.port, **QUICKLY)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            clean, _ = answered(run, step, made, VERIFY)
            assert [*reported(run, clean, made)] == []
        tampered = Tampered(run, made)
        for table in made.tables:
            tampered.tamper(table)
        with run.running() as step:
            request, _ = answered(run, step, made, REPAIR)
            found = dict(reported(run, request, made))
            assert found.items() <= as_text(tampered.keys).items()
            assert found.items() >= as_text(tampered.untouched()).items()
            made.change(3)
            until(step, is_caught_up(run, made))
            for table in made.tables:
                assert run.keyed(table) == made.state_at(run.batches[-1].commit)[table.name]
            again, answer = answered(run, step, made, VERIFY)
        assert [*reported(run, again, made)] == []
        verified = [row for row in run.rows("_informix_cdc_verified") if row["request"] == request.id]
        counts = sum(row[what] for row in verified for what in ("missing", "extra", "different"))
        assert counts == len(found)
        assert {row["target"] for row in verified} == {table.name for table in made.tables}
        assert answer.rows.keys() == {f"informix.{table.name}" for table in made.tables}


@pytest.mark.parametrize("seed", rest_in_all(range(6)))
def test_tables_of_every_kind_are_exact_whatever_is_requested_meanwhile(
    seed: int, tmp_path: Path
) -> None:
    with ledger(seed, 0) as (made, listening):
        made.add_a_table_for_each_kind_of_key()
        made.change(60)
        mirror = PutBack(tmp_path, made, listening.port)
        run = mirror.process_requests(8)
        assert run.stopped == {}
        mirror.require_exact(run)


FORMS: dict[str, dict[str, str]] = {
    "changes": {"keep": "changes"},
    "current": {},
    "soft": {"deletes": "soft"},
    "history": {"keep": "history"},
}


@pytest.mark.parametrize("form", rest_in_all(FORMS))
def test_a_resync_mends_every_form_of_targets_and_writes_only_what_differs(
    form: str, tmp_path: Path
) -> None:
    with ledger(11, 4) as (made, listening):
        made.change(60)
        run = MirrorRun(tmp_path, listening.port, FORMS[form], **QUICKLY)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            before = [DeltaTable(str(run.lake / table.name)).version() for table in made.tables]
            answered(run, step, made, RESYNC, changes=0)
            after = [DeltaTable(str(run.lake / table.name)).version() for table in made.tables]
            assert after == before
            for table in made.tables:
                tamper_form(run, table)
            answered(run, step, made, RESYNC, changes=0)
            made.change(3)
            until(step, is_caught_up(run, made))
        state = made.state_at(run.batches[-1].commit)
        for table in made.tables:
            assert live(run, table) == state[table.name].keys()


def tamper_form(run: MirrorRun, table: LedgerTable) -> None:
    place = str(run.lake / table.name)
    rows = pa.table(DeltaTable(place).scan().read_all())
    last = rows.slice(0, len(rows) - 1)
    ghost = rows.slice(0, 1).to_pylist()[0]
    name = table.key[-1]
    kind = rows.schema.field(name).type
    is_text = pa.types.is_string(kind) or kind == pa.string_view()
    ghost[name] = "zz" if is_text else date(2079, 1, 1) if kind == pa.date32() else 999
    for column, value in (
        ("_deleted_at", None),
        ("_valid_to", None),
        ("_valid_to_timestamp", None),
        ("_change_type", "insert"),
    ):
        if column in ghost:
            ghost[column] = value
    added = pa.Table.from_pylist([ghost], rows.schema)
    write_deltalake(place, pa.concat_tables([last, added]), mode="overwrite")


def live(run: MirrorRun, table: LedgerTable) -> set[Key]:
    """Return the keys of the rows that a target of any form has."""
    rows = run.rows(table.name)
    if rows and "_change_type" in rows[0]:
        rows.sort(key=lambda row: (row["_commit_version"], row["_change_ordinal"]))
        found: dict[Key, bool] = {}
        for row in rows:
            if row["_change_type"] == "truncate":
                found.clear()
                continue
            key = tuple(row[name] for name in table.key)
            found[key] = row["_change_type"] in ("insert", "update_postimage")
        return {key for key, is_there in found.items() if is_there}
    return {
        tuple(row[name] for name in table.key)
        for row in rows
        if row.get("_deleted_at") is None and row.get("_valid_to") is None
    }


def test_a_table_with_an_interval_key_is_not_verified_and_says_so(tmp_path: Path) -> None:
    with ledger(0, 0) as (made, listening):
        spans = LedgerTable("spans", ("k0",), {"k0": "interval year to month", "c0": "integer"})
        made.add(spans)
        with made.server.transaction() as transaction:
            for number, text in enumerate(["3-07", "-9999-11", "0-01"]):
                transaction.insert(spans.full_name, {"k0": text, "c0": number})
        run = MirrorRun(tmp_path, listening.port, **QUICKLY)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            folder, request = asked(run, VERIFY, spans)
            until(step, lambda: folder.answer(request.id) is not None)
            answer = folder.answer(request.id)
            assert answer is not None
            assert (
                "the order of INTERVAL YEAR(4) TO MONTH column k0" in answer.problems["informix.spans"]
            )
            answered(run, step, made, RESYNC, changes=0)
            until(step, is_caught_up(run, made))
        assert run.stopped == {}
        assert sorted(run.keyed(spans)) == [(-119_999,), (1,), (43,)]
