"""A transaction that does not fit in memory, merged into a large table, in a process of its own.

    python -m lab.benchmarks.large_merge FOLDER

Prints a line of JSON: seconds, and the most memory that the process had.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa

from harness.lake.batches_by_hand import ORDERS, Mirrored
from harness.lake.rows_of_batches import batch_row
from informix_cdc.lake.delta_tables import DeltaTarget
from informix_cdc.lake.large_batches import mapped
from lab.benchmarks.processes import report_json

COLUMNS = {"id": pa.int32(), "a": pa.string(), "n": pa.int64()}
THERE, STEP, FIRST, CHANGED, PIECE = 20_000_000, 1_000_000, 15_000_000, 6_575_000, 1 << 16


class Peak:
    """The most memory that the process has had while a thread watches."""

    def __init__(self) -> None:
        self.own = self.mapped = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ends.wait(0.02):
            lines = Path("/proc/self/status").read_text().splitlines()
            found = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
            self.own = max(self.own, int(found["RssAnon"]) >> 10)
            self.mapped = max(self.mapped, int(found["RssFile"]) >> 10)

    def end(self) -> None:
        self._ends.set()
        self._thread.join()


def pieces() -> Iterator[dict[str, Any]]:
    """Yield the delivered rows of the transaction."""
    one = batch_row(ORDERS, COLUMNS, [("update_postimage", 350, {"id": 1, "a": "", "n": 1})])
    known = pa.ipc.open_stream(one["arrow"]).read_all().to_batches()[0]
    for first in range(FIRST, FIRST + CHANGED, PIECE):
        ids = np.arange(first, min(first + PIECE, FIRST + CHANGED), dtype=np.int32)
        texts = pa.array([f"{'x' * 100} {number}" for number in ids.tolist()])
        fields = list(known.schema.field("row").type)
        row = pa.StructArray.from_arrays(
            [pa.array(ids), texts, pa.array(ids, pa.int64())], fields=fields
        )
        about = known.drop_columns(["row"]).take(pa.array(np.zeros(len(ids), np.int64)))
        batch = pa.RecordBatch.from_arrays([*about.columns, row], schema=known.schema)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        arrow = sink.getvalue().to_pybytes()
        yield {**one, "_change_ordinal": first, "changes": len(ids), "arrow": arrow}


def main() -> None:
    folder = Path(sys.argv[1])
    made = Mirrored(folder, merge="on-read")
    made.orders(
        ("truncate", 1, None),
        ("insert", 1, {"id": -1, "a": "", "n": 1}),
        columns=COLUMNS,
        is_snapshot=True,
    )
    made.orders(("delete", 110, {"id": -1, "a": "", "n": 1}), columns=COLUMNS)
    place = str(folder / "lake" / "orders")
    (application,) = DeltaTarget(place, "").log.at().numbers
    others = DeltaTarget(place, application)
    for first in range(0, THERE, STEP):
        ids = np.arange(first, first + STEP, dtype=np.int32)
        texts = pa.array([str(number) for number in ids.tolist()])
        others.append(pa.table({"id": ids, "a": texts, "n": pa.array(ids, pa.int64())}), None)
    made.mirror.close()
    made.restart()
    rows = list(mapped(pieces(), folder / "transaction"))
    made.orders(("update_postimage", 250, {"id": 1, "a": "", "n": 1}), columns=COLUMNS)  # the index
    peak, begun = Peak(), monotonic()
    made.batch(*rows)
    seconds = monotonic() - begun
    peak.end()
    made.mirror.close()
    found = {
        "seconds": seconds,
        "own_mib": peak.own,
        "mapped_mib": peak.mapped,
        "mib": sum(len(row["arrow"]) for row in rows) >> 20,
        "rows": pa.table(made.table().scan(columns=["id"])).num_rows,
    }
    report_json(found)


if __name__ == "__main__":
    main()
