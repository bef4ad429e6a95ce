"""Ask a metrics port what it shows, with the parser of prometheus-client."""

from __future__ import annotations

import socket
import urllib.request

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from harness.runs.patience import patiently


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_open(port: int) -> bool:
    """Tell whether somebody listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def scraped(port: int) -> dict[str, Metric]:
    """Return the families of metrics by their names."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=patiently(10)) as answer:
        text = answer.read().decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def scraped_values(port: int) -> dict[str, float]:
    """Return the values of metrics by their names."""
    families = scraped(port).values()
    return {sample.name: sample.value for family in families for sample in family.samples}
