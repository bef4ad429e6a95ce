"""The commands that need no server: `informix-cdc demo` and `informix-cdc emulator`.

Rule: as in `cli.py`, each command imports what it needs when it runs.
"""

from __future__ import annotations

import contextlib
import errno
import os
import ssl
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
from click.core import ParameterSource

from informix_cdc.terminal import Command, OneLineError

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_DECIDED_BY_A_RECORDING = (
    *("server_name", "latency_ms", "wait_to_fill", "dialect", "poses_as"),
    *("log_mib", "tls_certificate", "tls_key", "demo_workload"),
)


@click.command(cls=Command, short_help="Mirror an emulated Informix into Delta tables, live.")
@click.option(
    "--seconds",
    type=click.FloatRange(1),
    default=30,
    show_default=True,
    help="Duration of the stream in seconds.",
)
@click.option(
    "--transactions-per-second",
    type=click.FloatRange(0.1, 2000),
    default=40,
    show_default=True,
    help="Transactions per second of the workload.",
)
@click.option(
    "--seed",
    type=int,
    default=1,
    show_default=True,
    help="Seed of the workload; the same seed produces the same transactions.",
)
@click.option(
    "--into",
    type=click.Choice(["delta", "postgresql"]),
    default="delta",
    show_default=True,
    help="Mirror into Delta tables, or into a PostgreSQL server that the demo starts (initdb is needed)"
    " and cuts over to at the end.",
)
def demo(seconds: float, transactions_per_second: float, seed: int, into: str) -> None:
    """Mirror an embedded Informix emulator under load into Delta tables, and verify every value.

    Needs Spark, deltalake and Java 17 or later. Ctrl-C stops it early and prints the summary.
    """
    if find_spec("pyspark") is None:  # an optional dependency: the other commands work without it
        raise OneLineError("the demo requires Spark. Run: pip install 'pyspark>=4.0' 'pandas<3'")
    if find_spec("deltalake") is None:
        raise OneLineError("the demo requires delta-rs. Run: pip install 'deltalake>=1.6'")
    if into == "postgresql" and find_spec("psycopg") is None:
        raise OneLineError("the demo requires psycopg. Run: pip install 'psycopg[binary]>=3.2'")
    from informix_cdc.demo import DemoSettings, run

    raise SystemExit(run(DemoSettings(seconds, transactions_per_second, seed, into)))


@click.command(cls=Command, short_help="Run an emulated Informix with a demo database.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9088,
    show_default=True,
    help="TCP port to listen on; 0 picks a free one.",
)
@click.option(
    "--server-name",
    default="informix",
    show_default=True,
    help="DBSERVERNAME of the server.",
)
@click.option(
    "--latency-ms",
    type=click.FloatRange(0, 60_000),
    default=0,
    show_default=True,
    help="Emulated round trip: minimum time in milliseconds between a request and its response.",
)
@click.option(
    "--wait-to-fill",
    is_flag=True,
    help="Block reads until the requested number of records is available.",
)
@click.option(
    "--log-mib",
    type=click.IntRange(1, 4096),
    default=16,
    show_default=True,
    help="Size of the logical log in MiB, kept in memory as 8 log files of equal size. When all"
    " are full, the oldest is overwritten; a stream that still needs it loses data. Increase it"
    " to test longer outages.",
)
@click.option(
    "--dialect",
    type=click.Choice(["informix", "gbase8s"]),
    default="informix",
    show_default=True,
    help="Product to emulate.",
)
@click.option(
    "--poses-as",
    type=click.Choice(["informix-12.10", "informix-14.10", "informix-15"]),
    help="Version of Informix to emulate; the default is 14.10.",
)
@click.option(
    "--tls-certificate",
    type=_FILE,
    help="Certificate (PEM) of the server; it then accepts only encrypted connections, like onsocssl.",
)
@click.option("--tls-key", type=_FILE, help="Key (PEM) of --tls-certificate.")
@click.option(
    "--demo-workload",
    type=click.FloatRange(0.1, 2000),
    metavar="TRANSACTIONS_PER_SECOND",
    help="Run a workload on customers, orders and items at this rate.",
)
@click.option(
    "--replay",
    type=_FILE,
    help="Replay this recording of `informix-cdc record` instead.",
)
@click.pass_context
def emulator(
    context: click.Context,
    host: str,
    port: int,
    server_name: str,
    latency_ms: float,
    wait_to_fill: bool,
    log_mib: int,
    dialect: str,
    poses_as: str | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    demo_workload: float | None,
    replay: Path | None,
) -> None:
    """Run an emulated Informix server with a demo database, until Ctrl-C.

    It is not an Informix server, but it speaks the Informix protocol (SQLI), so IBM's JDBC driver can
    connect too. Its database `stores` has the tables informix.customers, informix.orders and
    informix.items.
    """
    from informix_cdc.commands.emulator import serve_demo
    from informix_emulator import keep_rows
    from informix_emulator.shop import demo_server

    if replay is not None:
        _refuse_with_replay(context)
        from informix_cdc.commands.emulator import serve_replay

        with _named_address(host, port):
            return serve_replay(replay, host, port)
    if poses_as is not None and dialect != "informix":
        raise click.UsageError("--poses-as needs --dialect informix.")
    server = demo_server(
        server_name, latency_ms / 1000, wait_to_fill, dialect, poses_as or dialect, log_mib
    )
    keep_rows(server)
    server.table_age_seconds = 0.0  # tables of clients have their true age, as on a live server
    with _named_address(host, port):
        tls = _tls_context(tls_certificate, tls_key)
        serve_demo(server, host, port, demo_workload, dialect, tls, tls_certificate)


@contextlib.contextmanager
def _named_address(host: str, port: int) -> Iterator[None]:
    """Report an address that cannot be listened on, and how to choose another."""
    try:
        yield
    except OSError as reason:
        if reason.errno not in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
            raise
        why = os.strerror(reason.errno)
        raise OneLineError(
            f"cannot listen on {host}:{port}: {why}. Choose another address with --host and"
            " --port; --port 0 picks a free port."
        ) from None


def _tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return the TLS context of the server, or None."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise click.UsageError("--tls-certificate and --tls-key must be given together.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as reason:
        what = reason.reason or "they cannot be read"
        raise OneLineError(
            f"{certificate} and {key} are not a certificate and its key: {what}."
        ) from None
    return context


def _refuse_with_replay(context: click.Context) -> None:
    for name in _DECIDED_BY_A_RECORDING:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            flag = "--" + name.replace("_", "-")
            raise click.UsageError(f"{flag} cannot be used with --replay: the recording determines it.")
