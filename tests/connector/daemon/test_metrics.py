"""What a metrics port of a shared capture shows of its readers."""

from __future__ import annotations

from pathlib import Path

from harness.capture.driving import Served, anchor_of, drained, insert
from harness.capture.scraping import free_port, scraped
from harness.capture.shared import capturing, shared_reader
from harness.runs.patience import wait_until


def test_each_reader_has_its_waiting_bytes_and_the_time_of_its_last_request(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    port = free_port()
    with (
        capturing(listening.port, tmp_path, metricsAddress=str(port)),
        shared_reader(tmp_path, "fast") as fast,
        shared_reader(tmp_path, "slow") as slow,
    ):
        anchor_of(slow)
        start, last = anchor_of(fast), insert(server, 1, 2, 3)
        _, start = drained(fast, start, last)
        fast.commit(start)

        def waiting() -> dict[str, float]:
            family = scraped(port)["informix_cdc_reader_waiting_bytes"]
            return {sample.labels["reader"]: sample.value for sample in family.samples}

        wait_until(lambda: waiting().get("fast") == 0 and waiting()["slow"] > 0)
        seen = scraped(port)["informix_cdc_reader_seen_seconds_ago"].samples
        assert {sample.labels["reader"] for sample in seen} == {"fast", "slow"}
        assert all(sample.value >= 0 for sample in seen)
