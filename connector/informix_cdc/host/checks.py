"""All checks of this host, in the order in which they are printed: Spark, the spool folder, ports.

Rule: each check yields one finding, based on the options and the environment. Nothing is created. A
port is bound for a moment and released.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from informix_capture_client.findings import Finding, failure, ok, warning
from informix_capture_client.printable import shown_bytes
from informix_cdc.host.jar_in_spark import check_reader_in_jvm
from informix_cdc.host.spark import check_java, check_spark, check_worker_python
from informix_cdc.options import BatchOptions, ReportOptions, SourceOptions, SpoolOptions

_SPOOL, _FLIGHT, _METRICS = "spool", "flight address", "metrics address"
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def check_spool(spool: SpoolOptions) -> Finding:
    """Check the location of the spool, and its free space."""
    folder = Path(spool.path or tempfile.gettempdir())
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    is_usable = place.is_dir() and os.access(place, os.R_OK | os.W_OK | os.X_OK)
    if not is_usable:
        what = "cannot be written to" if place.is_dir() else "is not a folder"
        return failure(_SPOOL, f"{place} {what}.", "Set option spoolPath to a folder of this user.")
    inodes = os.statvfs(place)
    if inodes.f_files > 0 and inodes.f_favail == 0:  # some file systems do not count inodes
        remedy = "Remove files there (df -i), or set option spoolPath to another disk."
        return failure(_SPOOL, f"the file system of {place} has no free inodes.", remedy)
    free_bytes = shutil.disk_usage(place).free
    found = f"{folder} has {shown_bytes(free_bytes)} free"
    if not spool.path:
        found = f"no spoolPath: a private folder in {found}"
    if free_bytes < spool.max_bytes:
        return warning(
            _SPOOL,
            f"{found}; the spool may use {shown_bytes(spool.max_bytes)} (maxSpoolBytes)"
            " when Spark is slower than the changes.",
            "Set option spoolPath to a larger disk, or lower maxSpoolBytes.",
        )
    return ok(_SPOOL, f"{found}.")


def check_flight_address(batches: BatchOptions) -> Finding:
    """Check whether executors can be served from the Flight address."""
    if (address := batches.flight_address) is None:
        return ok(
            _FLIGHT,
            "no Flight server: executors read files; executors on other hosts need a shared"
            " spoolPath, segmentCopies, or an address in option delivery.",
        )
    host, port = address
    if refused := _refused(host, port):
        return failure(
            _FLIGHT,
            refused,
            "Set option delivery to an address of this host with a free port, or to files.",
        )
    if host in _LOOPBACK:
        return ok(_FLIGHT, f"{host}: for executors on this host only; others need another address.")
    return ok(_FLIGHT, f"{_shown(host, port)} is available.")


def check_metrics_address(reports: ReportOptions) -> Finding:
    """Check whether metrics can be served from the configured address."""
    if (address := reports.metrics) is None:
        return ok(_METRICS, "no metrics are served: metricsAddress is not set.")
    host, port = address
    if refused := _refused(host, port):
        return failure(_METRICS, refused, "Correct option metricsAddress.")
    return ok(_METRICS, f"{_shown(host, port)} is available.")


def _refused(host: str, port: int) -> str:
    """Return why an address cannot be listened on; empty if it can."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            attempt.bind(address)
    except OSError as reason:
        return f"cannot listen on {host}, port {port or 'any'}: {reason.strerror or reason}."
    return ""


def _shown(host: str, port: int) -> str:
    return f"{host}, port {port or 'any'},"


def check_host(
    options: SourceOptions, environment: Mapping[str, str] = os.environ
) -> Iterator[list[Finding]]:
    """Run the checks; yield each finding when it is known."""
    yield [check_spark()]
    yield [check_java(environment)]
    yield [check_worker_python(environment)]
    yield [check_reader_in_jvm(options.batches, environment)]
    yield [check_spool(options.spool)]
    yield [check_flight_address(options.batches)]
    yield [check_metrics_address(options.reports)]
