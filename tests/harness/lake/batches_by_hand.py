"""A mirror that is given its batches by hand, in a folder or an object store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from harness.lake.rows_of_batches import Change, batch_row, end_at
from harness.spark.checkpoints import plan
from informix_cdc.lake import MirrorSettings
from informix_cdc.lake.epochs import Beginning
from informix_cdc.lake.mirrored_batch import MirroredBatch
from informix_cdc.lake.mirroring import Mirror

ORDERS = "informix.orders"
COLUMNS = {"id": pa.int32(), "note": pa.string()}
Columns = dict[str, pa.DataType]


class Mirrored:
    """A mirror that is given its batches by hand; with a session, for its catalog."""

    def __init__(self, folder: Path, spark: Any = None, **settings: Any) -> None:
        self.folder, self.spark = folder, spark
        self.settings = MirrorSettings.of(
            **{"into": f"{folder}/lake", "checkpoint": f"{folder}/checkpoint", **settings}
        )
        self.batches: list[MirroredBatch] = []
        self.number = 0
        self.restart()

    def restart(self) -> None:
        epoch = Beginning(self.settings, "ol_stores", "stores", self.spark).begin(may_begin_epoch=False)
        self.mirror = Mirror(self.settings, epoch, self.batches.append)

    def batch(self, *rows: dict[str, Any], tables: tuple[str, ...] = (ORDERS,)) -> None:
        self.number += 1
        end = end_at(100 * self.number, *tables)
        plan(Path(self.settings.checkpoint), self.number, end.to_json())
        self.mirror.apply(rows, self.number, end)

    def orders(self, *changes: Change, columns: Columns | None = None, **more: Any) -> None:
        self.batch(batch_row(ORDERS, columns or COLUMNS, changes, **more))

    def table(self, name: str = "orders") -> DeltaTable:
        options = dict(self.settings.storage_options)
        return DeltaTable(f"{self.settings.into}/{name}", storage_options=options)

    def rows(self, name: str = "orders") -> list[dict[str, Any]]:
        found = pa.table(self.table(name).scan().read_all()).to_pylist()
        return sorted(found, key=lambda row: (row["id"] is None, row["id"]))

    def control(self) -> list[tuple[str, str]]:
        rows = pa.table(self.table("_informix_cdc_tables").scan().read_all()).to_pylist()
        return [(row["table"], row["status"]) for row in sorted(rows, key=lambda row: row["batch"])]
