"""`informix-cdc size`: estimate log growth, spool and waiting times from a server's own figures.

Rule: it changes nothing. The counters of `sysptprof` are read twice, some time apart; the rest is
arithmetic on values. An estimate says what it rests on; what a server does not tell is unknown.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import click
from rich.table import Table as Grid

from informix_capture_client.catalog import LogSpace, RowCounters, Table, TableSize
from informix_capture_client.errors import AccessRefused
from informix_capture_client.printable import shown_bytes
from informix_cdc.options import SourceOptions
from informix_cdc.server import named_tables, open_catalog
from informix_cdc.terminal import answers, counted, say

_HOUR = 3600.0
_RESERVE = 1.5  # of log and spool: the rate of a sample is not the peak
# What one stream does on two cores, without a driver (docs/evidence/performance.md, "Limits of each
# stage" and "Snapshots"): changes that it stores, and existing rows that it reads, a second.
_CHANGES_A_SECOND, _EXISTING_ROWS_A_SECOND = 390_000, 100_000
_STORED_BYTES_OF_A_CHANGE = 40  # beside its row: kind, numbers and places


@dataclass(frozen=True, slots=True)
class TableLoad:
    """A table: its size, and what is written to it in a second.

    Attributes:
        is_logged: whether its full row logging is on, so that the log has grown already.
    """

    name: str
    size: TableSize
    inserts: float
    updates: float
    deletes: float
    is_logged: bool

    @property
    def images(self) -> float:
        """The rows that a stream delivers in a second; an update has two."""
        return self.inserts + 2 * self.updates + self.deletes

    @property
    def log_growth(self) -> float:
        """At most so many more bytes of log in a second: both whole rows of each update."""
        return 0.0 if self.is_logged else self.updates * 2 * self.size.row_bytes

    @property
    def spool_bytes(self) -> float:
        """About so many bytes of the spool in a second."""
        return self.images * (self.size.row_bytes + _STORED_BYTES_OF_A_CHANGE)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What capturing some tables needs.

    Attributes:
        tables: the tables.
        log: the log files.
        log_rate: bytes a second that the server wrote to its log while changes were counted.
        peak_rate: of the log file that filled fastest; None if unknown.
        outage_hours: for which Spark or the capture may be down.
    """

    tables: tuple[TableLoad, ...]
    log: LogSpace
    log_rate: float
    peak_rate: float | None
    outage_hours: float

    def total(self, of_table: Callable[[TableLoad], float]) -> float:
        """Return the sum over all tables."""
        return sum(map(of_table, self.tables))

    @property
    def log_growth(self) -> float:
        """The most by which the log grows, in bytes a second."""
        return self.total(lambda table: table.log_growth)

    @property
    def highest_log_rate(self) -> float:
        """The highest known rate, with the growth."""
        return max(self.log_rate, self.peak_rate or 0.0) + self.log_growth

    @property
    def log_reach_hours(self) -> float | None:
        """For how long the log reaches back at that rate; None if nothing is written."""
        rate = self.highest_log_rate
        return self.log.total_bytes / rate / _HOUR if rate else None

    @property
    def log_needed_bytes(self) -> float:
        """The size of log files for the outage, with a reserve."""
        return self.highest_log_rate * self.outage_hours * _HOUR * _RESERVE

    @property
    def spool_needed_bytes(self) -> float:
        """MaxSpoolBytes of a capture that runs while Spark is down, with a reserve."""
        rate = self.total(lambda table: table.spool_bytes)
        return rate * self.outage_hours * _HOUR * _RESERVE

    @property
    def snapshot_minutes(self) -> float | None:
        """How long the initial snapshot takes; None if the statistics know of no rows."""
        return self.total(lambda table: table.size.rows) / _EXISTING_ROWS_A_SECOND / 60 or None

    @property
    def used_share(self) -> float:
        """The share of one stream's rate that the changes need: from a half on, rows wait."""
        return self.total(lambda table: table.images) / _CHANGES_A_SECOND

    @property
    def catch_up_minutes(self) -> float | None:
        """How long a stream needs to have read an outage; None if it never catches up."""
        rate = self.total(lambda table: table.images)
        if rate >= _CHANGES_A_SECOND:
            return None
        return rate * self.outage_hours * _HOUR / (_CHANGES_A_SECOND - rate) / 60


def loads(
    tables: Sequence[Table],
    sizes: Sequence[TableSize],
    before: Sequence[RowCounters],
    after: Sequence[RowCounters],
    logged: Sequence[bool],
    seconds: float,
) -> Iterator[TableLoad]:
    """Yield what was written to each table; a counter that went back was restarted, and counts anew."""
    for table, size, first, last, is_logged in zip(tables, sizes, before, after, logged, strict=True):
        written = [now - then if now >= then else now for then, now in zip(first, last, strict=True)]
        inserts, updates, deletes = (count / seconds for count in written)
        yield TableLoad(str(table.name), size, inserts, updates, deletes, is_logged)


def print_size(
    options: SourceOptions,
    *,
    sample_seconds: float,
    outage_hours: float,
    as_json: bool,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Sample the server, and print the estimate.

    Raises:
        InformixCdcError: the server does not answer, or the user may not read its tables.
    """
    with open_catalog(options.connection) as catalog:
        tables = catalog.tables(named_tables(options, catalog))
        say(f"Counting the changes of {len(tables)} tables for {sample_seconds:g} s.")
        before, begun, position = catalog.counters(tables), time.monotonic(), catalog.current_position()
        wait(sample_seconds)
        after, seconds = catalog.counters(tables), time.monotonic() - begun
        found = loads(
            tables, catalog.sizes(tables), before, after, catalog.log_full_rows(tables), seconds
        )
        if (space := catalog.log_space()) is None:
            raise AccessRefused(
                "the user may not read the log files of the server.",
                "Use a user who may read sysmaster:syslogs and sysmaster:sysdbspaces.",
            )
        estimate = Estimate(
            tuple(found),
            space,
            space.bytes_since(position) / seconds,
            space.fastest_bytes_per_second(),
            outage_hours,
        )
    if as_json:
        click.echo(json.dumps(as_values(estimate)))
    else:
        _print_text(estimate)


def as_values(estimate: Estimate) -> dict[str, object]:
    """Return the estimate as JSON: rates a second, sizes in bytes, null where unknown."""
    return {
        "tables": [
            {
                "table": table.name,
                "rowBytes": table.size.row_bytes,
                "rows": table.size.rows,
                "insertsPerSecond": round(table.inserts, 3),
                "updatesPerSecond": round(table.updates, 3),
                "deletesPerSecond": round(table.deletes, 3),
                "fullRowLogging": table.is_logged,
                "logGrowthBytesPerSecond": round(table.log_growth),
                "spoolBytesPerSecond": round(table.spool_bytes),
            }
            for table in estimate.tables
        ],
        "log": {
            "totalBytes": estimate.log.total_bytes,
            "bytesPerSecond": round(estimate.log_rate),
            "peakBytesPerSecond": _rounded(estimate.peak_rate),
            "growthBytesPerSecond": round(estimate.log_growth),
            "reachHours": _rounded(estimate.log_reach_hours, 1),
            "neededBytes": round(estimate.log_needed_bytes),
        },
        "outageHours": estimate.outage_hours,
        "spoolNeededBytes": round(estimate.spool_needed_bytes),
        "snapshotMinutes": _rounded(estimate.snapshot_minutes, 1),
        "shareOfOneStream": round(estimate.used_share, 4),
        "catchUpMinutes": _rounded(estimate.catch_up_minutes, 1),
    }


def _rounded(value: float | None, digits: int = 0) -> float | None:
    return None if value is None else round(value, digits) if digits else round(value)


def _print_text(estimate: Estimate) -> None:
    console = answers()
    grid = Grid(box=None, pad_edge=False, header_style="dim")
    for heading in ("table", "rows", "bytes a row", "inserts/s", "updates/s", "deletes/s"):
        grid.add_column(heading, justify="left" if heading == "table" else "right")
    busiest = sorted(estimate.tables, key=lambda table: -table.images)
    for table in busiest[:_SHOWN]:
        rates = (f"{rate:,.1f}" for rate in (table.inserts, table.updates, table.deletes))
        grid.add_row(table.name, f"{table.size.rows:,}", f"{table.size.row_bytes:,}", *rates)
    console.print(grid)
    if len(busiest) > _SHOWN:
        console.print(f"and {len(busiest) - _SHOWN} quieter tables; --json has all")
    for what, value in _lines(estimate):
        console.print(f"{what:<34} {value}")


_SHOWN = 20


def _lines(estimate: Estimate) -> Iterator[tuple[str, str]]:
    hours = f"{estimate.outage_hours:g} h"
    yield (
        "Log now",
        f"{_rate(estimate.log_rate)} while counted, {_rate(estimate.peak_rate)} at its peak",
    )
    yield "Log growth by full row logging", f"at most {_rate(estimate.log_growth)}"
    reach = estimate.log_reach_hours
    yield (
        "Log reaches back",
        "unknown: nothing was written" if reach is None else f"{reach:,.1f} h at the highest of them",
    )
    needed = shown_bytes(round(estimate.log_needed_bytes))
    yield f"Log for an outage of {hours}", f"{needed}, with a reserve of a half"
    yield (
        f"Spool for an outage of {hours}",
        f"{shown_bytes(round(estimate.spool_needed_bytes))} (maxSpoolBytes of informix-cdc capture)",
    )
    rows, minutes = estimate.total(lambda table: table.size.rows), estimate.snapshot_minutes
    shown = "unknown" if minutes is None else f"about {minutes:,.1f} min for {rows:,.0f} rows"
    if empty := sum(not table.size.rows for table in estimate.tables):
        shown += f"; {counted(empty, 'table')} without rows (if not empty, run UPDATE STATISTICS LOW)"
    yield "Initial snapshot", shown
    yield "Changes", f"{estimate.used_share:.1%} of what one stream stores on two cores"
    minutes = estimate.catch_up_minutes
    yield (
        f"Catching up after {hours}",
        "never: use several streams" if minutes is None else f"about {minutes:,.1f} min",
    )
    yield (
        "Latency",
        "as in docs/latency.md: these changes do not delay each other"
        if estimate.used_share < _BUSY
        else "higher than in docs/latency.md: changes wait for each other",
    )


_BUSY = 0.5


def _rate(bytes_a_second: float | None) -> str:
    return "unknown" if bytes_a_second is None else f"{shown_bytes(round(bytes_a_second))}/s"
