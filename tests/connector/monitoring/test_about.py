"""What Prometheus is told of the query itself: what runs, since when, against which server."""

from __future__ import annotations

import time

import pytest

from harness.capture.driving import Served, anchor_of, reader
from harness.capture.scraping import free_port, scraped
from informix_cdc import __version__
from informix_cdc.monitoring import MetricsServer

OF_THE_QUERY = {"server": "informix", "database": "stores", "tables": "stores:informix.orders"}


@pytest.mark.only_in_all
def test_versions_dialect_and_start_are_shown(served: Served) -> None:
    server, listening = served
    port, before = free_port(), time.time()
    with reader(listening.port, metricsAddress=str(port)) as made:
        anchor_of(made)
        families = scraped(port)
    (info,), (started,) = (
        families[f"informix_cdc_{name}"].samples for name in ("info", "start_time_seconds")
    )
    assert info.value == 1
    assert info.labels == {
        **OF_THE_QUERY,
        "version": __version__,
        "dialect": "informix",
        "server_version": server.version,
    }
    assert started.labels == OF_THE_QUERY
    assert before <= started.value <= time.time()


def test_they_are_there_before_the_server_has_answered() -> None:
    port = free_port()
    shown = MetricsServer("127.0.0.1", port, {"server": "s"}, lambda: None, "gbase8s")
    families = scraped(port)
    shown.close()
    (info,) = families["informix_cdc_info"].samples
    assert (info.labels["server_version"], info.labels["dialect"]) == ("", "gbase8s")
    assert "informix_cdc_start_time_seconds" in families


def test_a_server_that_does_not_tell_its_version_is_captured_all_the_same(served: Served) -> None:
    server, listening = served
    server.version = ""
    port = free_port()
    with reader(listening.port, metricsAddress=str(port)) as made:
        anchor_of(made)
        (info,) = scraped(port)["informix_cdc_info"].samples
    assert info.labels["server_version"] == ""
