"""All checks of this host, in the order in which they are shown: Spark, the spool's folder, ports.

Rule: each leaves one finding; the host is what the options and the environment say. Nothing is made. A
port is bound for a moment and let go.
"""

from __future__ import annotations

import os
import resource
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from informix_capture_client.findings import Finding, failure, ok, warning
from informix_capture_client.printable import shown_bytes
from informix_cdc.host.spark import check_java, check_spark, check_worker_python
from informix_cdc.options import LOOPBACK, SourceOptions

_SPOOL, _FLIGHT, _METRICS = "spool", "flight address", "metrics address"
_OPEN_FILES = "open files"
_FEW_FILES = 1 << 16
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def check_spool(options: SourceOptions, _environment: Mapping[str, str]) -> Finding:
    """Check the place of the spool, and what is free there."""
    folder = Path(options.spool_path or tempfile.gettempdir())
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    is_usable = place.is_dir() and os.access(place, os.R_OK | os.W_OK | os.X_OK)
    if not is_usable:
        what = "cannot be written to" if place.is_dir() else "is no folder"
        return failure(_SPOOL, f"{place} {what}.", "Name a folder of this user in option spoolPath.")
    inodes = os.statvfs(place)
    if inodes.f_files > 0 and inodes.f_favail == 0:  # some file systems count none
        remedy = "Remove files there (df -i), or name another disk in option spoolPath."
        return failure(_SPOOL, f"the file system of {place} has no free inodes.", remedy)
    free_bytes = shutil.disk_usage(place).free
    found = f"{folder} has {shown_bytes(free_bytes)} free"
    if not options.spool_path:
        found = f"no spoolPath: a private folder in {found}"
    if free_bytes < options.max_spool_bytes:
        return warning(
            _SPOOL,
            f"{found}; the spool may take {shown_bytes(options.max_spool_bytes)} (maxSpoolBytes)"
            " while Spark does not keep up.",
            "Name a larger disk in option spoolPath, or lower maxSpoolBytes.",
        )
    return ok(_SPOOL, f"{found}.")


def check_flight_address(options: SourceOptions, _environment: Mapping[str, str]) -> Finding:
    """Check whether rows can be served to executors from there."""
    if not options.has_flight_server:
        return ok(
            _FLIGHT,
            "no Flight server: executors read files; those of other hosts need option flightHost, a"
            " shared spoolPath or segmentCopies.",
        )
    host, port = options.flight_host or LOOPBACK, options.flight_port
    if refused := _refused(host, port):
        return failure(
            _FLIGHT, refused, "Correct option flightHost, an address of this host, and flightPort."
        )
    if host in _LOOPBACK:
        return ok(_FLIGHT, f"{host}: executors of this host only; others need option flightHost.")
    return ok(_FLIGHT, f"{_shown(host, port)} can be listened on.")


def check_open_files(options: SourceOptions, _environment: Mapping[str, str]) -> Finding:
    """Check how many files a query's process may open, which includes connections to its ports."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # to which a query raises the soft limit
    if hard == resource.RLIM_INFINITY:
        return ok(_OPEN_FILES, "a query may open any number of files.")
    found = f"a query may open {hard:,} files"
    if options.has_flight_server and hard < _FEW_FILES:
        return warning(
            _OPEN_FILES,
            f"{found}, and each connection to the Flight port is one: who reaches it can use them up.",
            f"Raise the hard limit to {_FEW_FILES:,} or more (ulimit -Hn, LimitNOFILE of the service),"
            " and let only executors reach flightPort.",
        )
    return ok(_OPEN_FILES, f"{found}.")


def check_metrics_address(options: SourceOptions, _environment: Mapping[str, str]) -> Finding:
    """Check whether metrics can be served from there."""
    host, port = options.metrics_host, options.metrics_port
    if not port:
        return ok(_METRICS, "no metrics are served: metricsPort is 0.")
    if refused := _refused(host, port):
        return failure(_METRICS, refused, "Correct options metricsHost and metricsPort.")
    return ok(_METRICS, f"{_shown(host, port)} can be listened on.")


def _refused(host: str, port: int) -> str:
    """Return why nothing can listen at an address; empty if something can."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            attempt.bind(address)
    except OSError as reason:
        return f"{_shown(host, port)} cannot be listened on: {reason.strerror or reason}."
    return ""


def _shown(host: str, port: int) -> str:
    return f"{host}, port {port or 'any'},"


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
