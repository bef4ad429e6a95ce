"""`informix-cdc emulator`: the embedded server on a port, with the demo database."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from threading import Event, Thread

import click

from informix_capture_client.dialects import GBASE_8S, INFORMIX
from informix_capture_client.emulator import EmulatedServer, ListeningServer, serve
from informix_cdc.demo.database import DATABASE, PASSWORD, TABLE_NAMES
from informix_cdc.demo.workload import Workload
from informix_cdc.options.source import PASSWORD_VARIABLE

_NOT_A = {INFORMIX.name: f"an {INFORMIX.product}", GBASE_8S.name: f"a {GBASE_8S.product}"}


def serve_demo(
    server: EmulatedServer,
    host: str,
    port: int,
    transactions_per_second: float | None,
    dialect: str = INFORMIX.name,
) -> None:
    """Serve until interrupted; tell how to connect."""

    def announce(listening: ListeningServer) -> None:
        _announce(listening, transactions_per_second, dialect)

    with _workload(server, transactions_per_second):
        serve(server, host, port, announce)
    click.echo("The emulator has ended.", err=True)


def tail_command(listening: ListeningServer, dialect: str = INFORMIX.name) -> str:
    """Return a command that shows the changes, ready to be copied."""
    named = "" if dialect == INFORMIX.name else f" --dialect {dialect}"
    return (
        f"{PASSWORD_VARIABLE}={PASSWORD} informix-cdc tail --transport emulator"
        f" --host {listening.host} --port {listening.port} --server {listening.server.name}"
        f"{named} --database {DATABASE} --table {','.join(TABLE_NAMES)}"
    )


def _announce(listening: ListeningServer, transactions_per_second: float | None, dialect: str) -> None:
    quiet = "" if transactions_per_second else " It is quiet: --demo-workload 5 brings it to life."
    click.echo(
        f"An emulator, not {_NOT_A[dialect]} server, listens on {listening.host}:{listening.port}."
        f"{quiet} Ctrl-C ends it. To watch it:",
        err=True,
    )
    click.echo(tail_command(listening, dialect))


@contextlib.contextmanager
def _workload(server: EmulatedServer, transactions_per_second: float | None) -> Iterator[None]:
    if transactions_per_second is None:
        yield
        return
    stop = Event()
    workload = Workload(server, time.time_ns(), transactions_per_second)
    thread = Thread(target=workload.run, args=(stop,), name="demo workload", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
