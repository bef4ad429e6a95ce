"""The demo's check over a stream without Spark: every row that was there, and every change."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from harness.capture.rows_without_spark import rows_without_spark
from harness.runs.patience import patiently
from informix_cdc.demo.check import DemoCheck
from informix_cdc.demo.rows_there import NEXT_CUSTOMER, NEXT_ORDER, rows_there
from informix_cdc.options import SourceOptions
from informix_emulator import ListeningServer, keep_rows, load_rows
from informix_emulator.shop import DATABASE, PASSWORD, TABLE_NAMES, RowDict, Workload, demo_server


@pytest.mark.slow
def test_rows_there_and_transactions_beside_them_are_verified(tmp_path: Path) -> None:
    check, server, tables = DemoCheck(), demo_server(), dict[str, list[RowDict]]()
    for table, row in rows_there(random.Random(4), time.time()):
        tables.setdefault(table, []).append(row)
        check.expect_there(table, row)
    for table, rows in tables.items():
        load_rows(server, table, rows)
    keep_rows(server)
    workload = Workload(
        server, 4, 100, check.expect, first_customer=NEXT_CUSTOMER, first_order=NEXT_ORDER
    )
    with ListeningServer(server) as listening:
        options = SourceOptions.parse(
            {
                "host": listening.host,
                "port": str(listening.port),
                "server": server.name,
                "database": DATABASE,
                "table": ",".join(TABLE_NAMES),
                "password": PASSWORD,
                "transport": "sqli",
                "initialSnapshot": "all",
                "snapshotParallelism": "3",
                "snapshotChunkRows": "500",
                "spoolPath": str(tmp_path),
            }
        )
        ready, stop = threading.Event(), threading.Event()
        worker = threading.Thread(target=lambda: ready.wait() and workload.run(stop))
        worker.start()
        deadline = time.monotonic() + patiently(30)
        batches = rows_without_spark(options, ready.set)
        try:
            for changes in batches:
                check.arrive([each for each in changes if each.change_type != "truncate"], time.time())
                if check.there.is_complete:
                    stop.set()
                if (stop.is_set() and check.is_complete()) or time.monotonic() > deadline:
                    break
        finally:
            batches.close()
            ready.set()
            stop.set()
            worker.join()
    assert check.difference == ""
    assert check.there.is_complete
    assert check.verified > 20
