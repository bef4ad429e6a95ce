"""The first load of a large table, from a generator in place of the server, in a process of its own.

    python -m lab.benchmarks.large_load FOLDER ROWS

Chunks arrive as the reader delivers them, and the mirror starts again in the middle. Prints JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.lake.batches_by_hand import ORDERS, Mirrored
from harness.lake.rows_of_batches import batch_row
from informix_cdc.merge_on_read import TableLog, TablePlace
from lab.benchmarks.emulated_source import say
from lab.benchmarks.large_merge import Peak

COLUMNS = {"id": pa.int32(), "a": pa.string(), "n": pa.int64()}
CHUNK, CHUNKS_A_BATCH, CHANGES = 250_000, 4, 50


def chunk(first: int, count: int) -> dict[str, Any]:
    """Return the delivered row of a chunk."""
    one = batch_row(ORDERS, COLUMNS, [("insert", 50, {"id": 1, "a": "", "n": 1})], is_snapshot=True)
    known = pa.ipc.open_stream(one["arrow"]).read_all().to_batches()[0]
    ids = np.arange(first, first + count, dtype=np.int32)
    texts = pc.binary_join_element_wise("row", pa.array(ids * 7919 % 1000003).cast(pa.string()), " ")
    fields = list(known.schema.field("row").type)
    row = pa.StructArray.from_arrays([pa.array(ids), texts, pa.array(ids, pa.int64())], fields=fields)
    about = known.drop_columns(["row"]).take(pa.array(np.zeros(count, np.int64)))
    batch = pa.RecordBatch.from_arrays([*about.columns, row], schema=known.schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return {**one, "_change_ordinal": first, "changes": count, "arrow": sink.getvalue()}


def main() -> None:
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    made = Mirrored(folder, merge="on-read")
    facts = {"rows": count, **loaded(made, count), **changed(made)}
    files = TableLog(TablePlace(f"{folder}/lake/orders")).at().files
    facts |= {"files": len(files), "live_mib": sum(each["size"] for each in files.values()) >> 20}
    lake = [path.stat().st_size for path in (folder / "lake").rglob("*") if path.is_file()]
    rows = pa.table(made.table().scan(columns=["id"])).num_rows
    say(json.dumps({**facts, "lake_mib": sum(lake) >> 20, "is_right": rows == count}))
    made.mirror.close()


def loaded(made: Mirrored, count: int) -> dict[str, Any]:
    """Load the table; the mirror starts again in the middle."""
    made.orders(("truncate", 50, None), columns=COLUMNS, is_snapshot=True)
    peak, begun, writing = Peak(), monotonic(), 0.0
    for first in range(0, count, CHUNK * CHUNKS_A_BATCH):
        if first in (0, count // 2):
            start_again(made)
        rows = [chunk(first + CHUNK * number, CHUNK) for number in range(CHUNKS_A_BATCH)]
        started = monotonic()
        made.batch(*rows)
        writing += monotonic() - started
    peak.end()
    seconds = monotonic() - begun
    return {"seconds": round(seconds, 1), "writing_s": round(writing, 1), "own_mib": peak.own}


def start_again(made: Mirrored) -> None:
    made.mirror.close()
    made.restart()
    assert made.mirror.maintenance is not None
    made.mirror.maintenance.start()


def changed(made: Mirrored) -> dict[str, Any]:
    """Change some rows after a start: the first batch makes the index."""
    made.mirror.close()
    made.restart()
    peak, facts = Peak(), dict[str, Any]()
    for name in ("first_changes_s", "next_changes_s"):
        started, commit = monotonic(), 100 * made.number + 110
        rows = ({"id": number * 997, "a": name, "n": number} for number in range(CHANGES))
        made.orders(*(("update_postimage", commit, row) for row in rows), columns=COLUMNS)
        facts[name] = round(monotonic() - started, 3)
    peak.end()
    return {**facts, "index_own_mib": peak.own, "index_mapped_mib": peak.mapped}


if __name__ == "__main__":
    main()
