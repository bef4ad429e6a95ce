"""What stays the same for a whole schedule, and the options that each of its processes has.

Rule: the plain `Setup()` has no chance in it; what varies is decided by the schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.servers.options import changed, parsed
from harness.simulation.account import COLUMNS, DATABASE, PASSWORD, TABLE
from harness.simulation.decisions import Decisions
from informix_capture_client.catalog import Table
from informix_capture_client.sql_names import TableName
from informix_capture_client.values import Column
from informix_cdc.options.source import SourceOptions

LOG_FILES = 128  # more than a schedule fills, so that only a fault overwrites one
_OPTIONS = parsed(
    {
        "host": "here",
        "port": "1",
        "server": "informix",
        "database": DATABASE,
        "table": "informix.changes",
        "password": PASSWORD,
        "transport": "sqli",
        "delivery": "files",
        "stream__stalled_seconds": 10,
    }
)


def captured_table(name: str, layout: str = COLUMNS) -> Table:
    """Return what Spark is told of a table before anybody looks into the catalog."""
    columns = tuple(Column(*each.split()) for each in layout.split(", "))
    return Table(TableName.parse(name.partition(":")[2], DATABASE), 0, 0, "", columns)


@dataclass(frozen=True)
class Setup:
    """What stays the same for a whole schedule. Of `one_in`, 0 means never."""

    turns: int = 40
    keeps_spool: bool = False
    foreign_transactions: bool = True
    late_begin: bool = False
    hides_headless: bool = False
    log_pages: int = 8
    page_bytes: int = 512
    starting_position: str = "latest"
    on_data_loss: str = "fail"
    death_one_in: int = 0
    failpoint_one_in: int = 0
    fault_one_in: int = 0
    overwrite_one_in: int = 0
    watch_one_in: int = 0
    sample_one_in: int = 1
    varies_options: bool = False

    @property
    def captured(self) -> list[Table]:
        return [captured_table(TABLE)]

    @classmethod
    def decided(cls, decide: Decisions) -> Setup:
        """Choose one."""
        overwrite_one_in = decide.one_of([0, 0, 0, 2, 6])
        return cls(
            turns=10 + decide.below(30),
            keeps_spool=bool(decide.below(2)),
            foreign_transactions=bool(decide.below(2)),
            late_begin=bool(decide.below(2)),
            hides_headless=bool(decide.below(2)),
            log_pages=decide.one_of([8, 2, 4]),
            page_bytes=decide.one_of([512, 256, 2048]),
            starting_position=decide.one_of(["latest", "latest", "earliest"]),
            on_data_loss="fail" if overwrite_one_in == 0 or decide.one_in(4) else "continue",
            death_one_in=decide.one_of([0, 60, 30, 15]),
            failpoint_one_in=decide.one_of([0, 80, 30, 15]),
            fault_one_in=decide.one_of([0, 30, 10]),
            overwrite_one_in=overwrite_one_in,
            watch_one_in=decide.one_of([0, 0, 3]),
            sample_one_in=decide.one_of([1, 1, 3]),
            varies_options=True,
        )

    def options(self, folder: Path, decide: Decisions) -> SourceOptions:
        """Return the options of the next process; a user may change them between two runs."""
        options = changed(
            _OPTIONS,
            stream__on_data_loss=self.on_data_loss,
            stream__starting_position=self.starting_position,
            spool__path=str(folder / "spool") if self.keeps_spool else "",
        )
        return _varied(options, decide.one_of) if self.varies_options else options


def _varied(options: SourceOptions, choose: Callable[[Sequence[int]], int]) -> SourceOptions:
    return changed(
        options,
        stream__max_records_per_read=choose([256, 1, 2, 3, 7]),
        stream__read_buffer_bytes=choose([4096, 128, 150, 200]),
        batches__max_rows_per_trigger=choose([0, 0, 1, 4]),
        spool__max_latency_ms=choose([20, 0, 2000]),
        spool__max_bytes=choose([1 << 30, 1 << 30, 1]),
        batches__min_partitions=choose([1, 3]),
        spool__max_transaction_memory_bytes=choose([1 << 30, 1, 300]),
        spool__segment_bytes=choose([1 << 20, 1 << 20, 1]),
    )
