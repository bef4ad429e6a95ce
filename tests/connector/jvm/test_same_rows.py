"""The same partitions, read in Python and in the JVM: the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, islice
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from connector.jvm.java_reader import plain_rows, read_in_jvm, require_javac
from connector.jvm.random_segment import parts, random_segment
from end_to_end.test_every_type import HIGHEST, LOWEST, USUAL, VALUES, name_of, null_row, row
from harness.capture.driving import anchor_of, next_offset, reader
from harness.servers.stores import CUSTOMERS, ORDERS, listening_stores, order_row
from informix_capture_client.choices import RowForm
from informix_capture_client.shapes import DeliveredTable, RowDelivery, row_schema
from informix_cdc.executors import SegmentPlaces
from informix_cdc.spark.partitions import SpoolPartition
from informix_cdc.spark.schema import to_spark
from informix_checkpoints.spool.segments import SegmentRange
from informix_emulator import EmulatedServer

pytestmark = pytest.mark.slow

EVERY_TYPE = "stores:informix.every_type"
TWO_TABLES = "informix.every_type,informix.orders"
FORMS = {
    "every type as rows, in cut segments": {"table": "informix.every_type", "minPartitions": "3"},
    "intervals as texts": {"table": "informix.every_type", "intervals": "string"},
    "rows of two tables, in cut segments": {"table": TWO_TABLES, "minPartitions": "5"},
    "envelopes of every type": {"table": "informix.every_type", "shape": "envelope"},
    "envelopes of two tables, in cut segments": {
        "table": TWO_TABLES,
        "shape": "envelope",
        "minPartitions": "5",
        "truncate": "emit",
    },
    "rows of two tables with few metadata, in cut segments": {
        "table": TWO_TABLES,
        "minPartitions": "5",
        "metadata": "minimal",
        "truncate": "emit",
    },
    "JSON of two tables, in cut segments": {
        "table": TWO_TABLES,
        "shape": "json",
        "minPartitions": "5",
        "truncate": "emit",
    },
    "JSON of every type": {"table": "informix.every_type", "shape": "json"},
    "JSON without images before, in cut segments": {
        "table": TWO_TABLES,
        "shape": "json",
        "minPartitions": "7",
        "beforeImage": "false",
        "truncate": "ignore",
    },
    "envelopes without images before, in cut segments": {
        "table": TWO_TABLES,
        "shape": "envelope",
        "minPartitions": "7",
        "beforeImage": "false",
        "truncate": "ignore",
    },
    "rows without images before, in cut segments": {
        "table": TWO_TABLES,
        "minPartitions": "7",
        "beforeImage": "false",
        "truncate": "ignore",
    },
}

WHOLE = "every type as rows, in cut segments"
# Other options of a shape that the forms of one run have too.
IN_ALL = {
    "rows of two tables, in cut segments",
    "envelopes of two tables, in cut segments",
    "JSON of two tables, in cut segments",
    "rows without images before, in cut segments",
}
SEEDS = (1,)


def change(server: EmulatedServer, *, truncates: bool) -> int:
    """Commit changes of several tables in two or three transactions; return the last commit."""
    if truncates:
        with server.transaction() as transaction:
            transaction.truncate(ORDERS)
    with server.transaction(user_id=1001) as transaction:
        for written, _ in (row(USUAL), row(LOWEST), row(HIGHEST), null_row()):
            transaction.insert(EVERY_TYPE, written)
    transaction = server.begin(user_id=502)
    for number in range(1, 12):
        note = None if number % 3 == 0 else f"note {number}"
        new = order_row((number, number, note, Decimal(number) / 4))
        transaction.insert(ORDERS, new)
        transaction.update(ORDERS, new, {**new, "note": "äöü" * (number % 8)})
        if number % 4 == 0:
            transaction.delete(ORDERS, {**new, "note": "äöü" * (number % 8)})
    transaction.insert(CUSTOMERS, {"customer_num": 1, "name": "nobody asks", "city": None})
    return transaction.commit()


@pytest.fixture(scope="module")
def read(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Any, Any]]:
    """For each form of this run what Python reads, partition by partition, and what the JVM reads."""
    require_javac()
    tests = [item for item in request.session.items if item.module is request.module]  # type: ignore[attr-defined]
    wanted = {item.callspec.params["form"] for item in tests if hasattr(item, "callspec")} | {WHOLE}
    folder = tmp_path_factory.mktemp("partitions")
    with ExitStack() as opened:  # spools last as long as their readers; one Java reads them all
        cases = {
            form: opened.enter_context(captured(options))
            for form, options in FORMS.items()
            if form in wanted
        }
        for seed in SEEDS:
            whole, columns = random_segment(folder, seed)
            for number, form in enumerate(OF_RANDOM):
                cases[f"random {seed}, {number}"] = of_ranges(parts(whole, seed), columns, form)
        whole, columns = random_segment(folder, 0, is_finite=False)
        cases[NOT_FINITE] = of_ranges([whole], columns, RowForm(shape="json"))
        found = read_in_jvm(
            [(to_spark(case.schema), one) for case in cases.values() for one in case.pickled],
            folder,
        )
    assert found.left_over == 0
    lines = iter(found.partitions)
    return {form: (case.rows, list(islice(lines, len(case.rows)))) for form, case in cases.items()}


@dataclass(frozen=True)
class Captured:
    """The partitions of a batch: the rows that Python reads of each, and what travels."""

    schema: pa.Schema
    rows: list[list[dict[str, Any]]]
    pickled: list[bytes]


@contextmanager
def captured(options: dict[str, str]) -> Iterator[Captured]:
    """Capture the changes in one form; what was captured can be read within the block."""
    columns = ", ".join(f"{name_of(text)} {text}" for text in VALUES)
    with listening_stores() as (server, listening):
        server.create_table(EVERY_TYPE, columns)
        with reader(listening.port, **options) as made:
            start = end = anchor_of(made)
            upto = change(server, truncates="truncate" in options)
            while end["commit"] < upto:
                end = next_offset(made, end)
            partitions = made.partitions(start, end)
            batches = [list(made.read(partition)) for partition in partitions]
            pickled = [cloudpickle.dumps(partition) for partition in partitions]
            schema = next(batch.schema for of_one in batches for batch in of_one)
            yield Captured(schema, list(map(plain_rows, batches)), pickled)


def of_ranges(ranges: Sequence[SegmentRange], columns: pa.Schema, form: RowForm) -> Captured:
    """Read each range as a partition."""
    places = SegmentPlaces("files")
    delivery = RowDelivery(form, row_schema([DeliveredTable("stores:informix.t", columns)], form))
    stored = [places.stored([one], whole_updates=form.joins_images) for one in ranges]
    batches = [list(delivery.rows(of_one)) for of_one in stored]
    is_flat = form.shape != "json"
    pickled = [
        cloudpickle.dumps(SpoolPartition((one,), places, form, is_flat=is_flat)) for one in ranges
    ]
    return Captured(delivery.schema, list(map(plain_rows, batches)), pickled)


OF_RANDOM = [
    RowForm(truncate="emit"),
    RowForm(before_image=False, truncate="ignore"),
    RowForm(shape="envelope", truncate="emit", server="ol"),
    RowForm(shape="json", truncate="ignore", before_image=False),
    RowForm(shape="json", truncate="emit", metadata="minimal"),
]
NOT_FINITE = "JSON of real numbers that are none"
CASES = [
    *FORMS,
    NOT_FINITE,
    *(f"random {seed}, {number}" for seed in SEEDS for number in range(len(OF_RANDOM))),
]


@pytest.mark.parametrize(
    "form",
    [pytest.param(form, marks=[pytest.mark.only_in_all] * (form in IN_ALL), id=form) for form in CASES],
)
def test_both_readers_have_the_same_rows(form: str, read: dict[str, tuple[Any, Any]]) -> None:
    in_python, in_jvm = read[form]
    assert sum(map(len, in_python)) > 0
    assert in_jvm == in_python
    if "cut" in form:
        assert len(in_python) > 1


def test_a_row_has_every_type_that_the_product_makes(read: dict[str, tuple[Any, Any]]) -> None:
    """VALUES names them all: test_every_type holds it against the manual's table."""
    _, partitions = read[WHOLE]
    usual, lowest, highest, null = chain(*partitions)
    for text in VALUES:
        assert None not in (usual[name_of(text)], lowest[name_of(text)], highest[name_of(text)])
        assert (null[name_of(text)] is None) == ("serial" not in text)
