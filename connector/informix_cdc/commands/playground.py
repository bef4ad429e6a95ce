"""The words that need no server: `informix-cdc demo` and `informix-cdc emulator`.

Rule: as in `cli.py`: what a word needs is imported when it is typed.
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

from informix_cdc.terminal import Command, OneLineError, one_line_errors

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_DECIDED_BY_A_RECORDING = (
    *("server_name", "latency_ms", "wait_to_fill", "dialect", "poses_as"),
    *("log_mib", "tls_certificate", "tls_key", "demo_workload"),
)


@click.command(cls=Command, short_help="Watch a shop's tables follow an emulated Informix, in Delta.")
@click.option(
    "--seconds",
    type=click.FloatRange(1),
    default=30,
    show_default=True,
    help="Seconds that the demo streams.",
)
@click.option(
    "--transactions-per-second",
    type=click.FloatRange(0.1, 2000),
    default=40,
    show_default=True,
    help="Transactions that the workload begins per second.",
)
@click.option(
    "--seed",
    type=int,
    default=1,
    show_default=True,
    help="Seed of the workload: the same seed makes the same transactions.",
)
def demo(seconds: float, transactions_per_second: float, seed: int) -> None:
    """Mirror a busy shop of an embedded Informix emulator into Delta tables, and check every value.

    Needs Spark, deltalake and Java 17 or later, and nothing else. Ctrl-C ends it early, with the
    summary.
    """
    if find_spec("pyspark") is None:  # an extra: the other words do without
        raise OneLineError("the demo needs Spark: pip install 'pyspark>=4.0' 'pandas<3'.")
    if find_spec("deltalake") is None:
        raise OneLineError("the demo needs delta-rs: pip install 'deltalake>=1.6'.")
    from informix_cdc.demo import DemoSettings, run

    with one_line_errors():
        raise SystemExit(run(DemoSettings(seconds, transactions_per_second, seed)))


@click.command(cls=Command, short_help="Serve an emulated Informix with a demo database.")
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
    help="Name of the server (its DBSERVERNAME).",
)
@click.option(
    "--latency-ms",
    type=click.FloatRange(0, 60_000),
    default=0,
    show_default=True,
    help="Emulated round trip in milliseconds: least time between a request and its answer.",
)
@click.option(
    "--wait-to-fill",
    is_flag=True,
    help="Let reads wait until there are as many records as they ask for.",
)
@click.option(
    "--log-mib",
    type=click.IntRange(1, 4096),
    default=16,
    show_default=True,
    help="Size of the logical log in MiB, kept in memory: 8 log files of equal size. When all are full,"
    " the oldest is overwritten, and a stream that still needs it has lost data. Raise it to try out"
    " longer outages.",
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
    help="Version of Informix to pose as; 14.10 if none is given.",
)
@click.option(
    "--tls-certificate",
    type=_FILE,
    help="Certificate (PEM) of a server that takes encrypted connections alone, as onsocssl does.",
)
@click.option("--tls-key", type=_FILE, help="Key (PEM) of --tls-certificate.")
@click.option(
    "--demo-workload",
    type=click.FloatRange(0.1, 2000),
    metavar="TRANSACTIONS_PER_SECOND",
    help="Run a workload that changes customers, orders and items at this rate.",
)
@click.option(
    "--replay",
    type=_FILE,
    help="Recording of `informix-cdc record` to replay instead.",
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
    """Serve an emulated Informix server with a demo database, until Ctrl-C.

    It is no Informix, and speaks its protocol (SQLI), so that IBM's JDBC driver reaches it as well.
    Its database `stores` has the tables informix.customers, informix.orders and informix.items.
    """
    from informix_cdc.commands.emulator import serve_demo
    from informix_emulator import keep_rows
    from informix_emulator.shop import demo_server

    if replay is not None:
        _refuse_with_replay(context)
        from informix_cdc.commands.emulator import serve_replay

        with one_line_errors(), _named_address(host, port):
            return serve_replay(replay, host, port)
    if poses_as is not None and dialect != "informix":
        raise click.UsageError("--poses-as names a version of Informix, and --dialect another product.")
    server = demo_server(
        server_name, latency_ms / 1000, wait_to_fill, dialect, poses_as or dialect, log_mib
    )
    keep_rows(server)
    with one_line_errors(), _named_address(host, port):
        tls = _tls_context(tls_certificate, tls_key)
        serve_demo(server, host, port, demo_workload, dialect, tls, tls_certificate)


@contextlib.contextmanager
def _named_address(host: str, port: int) -> Iterator[None]:
    """Say what to do about an address at which nothing can listen."""
    try:
        yield
    except OSError as reason:
        if reason.errno not in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
            raise
        why = os.strerror(reason.errno)
        raise OneLineError(
            f"{host}:{port} cannot be listened on: {why}. Name another by --host and --port;"
            " --port 0 picks a port that is free."
        ) from None


def _tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return what connections are encrypted with, or None."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise click.UsageError("--tls-certificate and --tls-key go together.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as reason:
        what = reason.reason or "it cannot be read"
        raise OneLineError(
            f"{certificate} and {key} are no certificate with its key: {what}."
        ) from None
    return context


def _refuse_with_replay(context: click.Context) -> None:
    for name in _DECIDED_BY_A_RECORDING:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            flag = "--" + name.replace("_", "-")
            raise click.UsageError(f"{flag} means nothing beside --replay: the recording is as it is.")
