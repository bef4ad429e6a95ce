"""All checks of this host, in the order in which they are shown.

Rule: each leaves one finding; the host is what the options and the environment say.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

from informix_capture_client.findings import Finding
from informix_cdc.host.places import (
    check_flight_address,
    check_metrics_address,
    check_open_files,
    check_spool,
)
from informix_cdc.host.spark import check_java, check_spark, check_worker_python
from informix_cdc.options import SourceOptions

_Check = Callable[[SourceOptions, Mapping[str, str]], Finding]

CHECKS: tuple[_Check, ...] = (
    check_spark,
    check_java,
    check_worker_python,
    check_spool,
    check_flight_address,
    check_open_files,
    check_metrics_address,
)


def check_host(
    options: SourceOptions, environment: Mapping[str, str] = os.environ
) -> Iterator[list[Finding]]:
    """Run every check, and yield what it found as soon as it has."""
    for check in CHECKS:
        yield [check(options, environment)]
