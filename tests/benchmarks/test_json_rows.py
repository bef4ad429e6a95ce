"""What rows as JSON cost at capture, by the number of tables, from transactions to Arrow batches."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.many_tables import encoder_of, transactions_of
from benchmarks.measuring import REPEATS, Report, one_core
from informix_capture_client.choices import RowForm

ROWS = 100_000
TABLES = (1, 10, 100, 500)


def test_json_costs_the_same_for_any_number_of_tables(report: Report) -> None:
    with one_core():
        seconds = {count: cpu_seconds(work_of(count)) for count in TABLES}
        rows = cpu_seconds(work_of(1, RowForm()))
    for count, found in seconds.items():
        grown = f"{found / seconds[1]:.2f} x one table; {found / rows:.1f} x shape=rows of one table"
        report.add(
            "encoding as JSON", f"{count} tables", f"{found / ROWS * 1e6:.2f} µs of CPU a row", grown
        )


def work_of(tables: int, row_form: RowForm = RowForm(shape="json")) -> Callable[[], object]:  # noqa: B008
    encoder, transactions = encoder_of(tables, row_form), transactions_of(tables, ROWS)
    assert sum(batch.num_rows for batch in encoder.encode(transactions)) == ROWS
    return lambda: [None for _ in encoder.encode(transactions)]


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of the best run."""
    found = []
    for _ in range(REPEATS):
        begun = time.thread_time()
        work()
        found.append(time.thread_time() - begun)
    return min(found)
