"""`informix-cdc emulator`: run the embedded server with the demo database, or replay a recording."""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

from informix_capture_client.dialects import GBASE_8S, INFORMIX
from informix_capture_client.errors import BadOption
from informix_capture_client.shell_commands import command
from informix_capture_client.transport import TLS
from informix_cdc.options import PASSWORD_VARIABLE, SQLI, flag_of, option_rows
from informix_cdc.terminal import say, say_unbroken
from informix_emulator import (
    BadRecording,
    EmulatedServer,
    ListeningServer,
    Recording,
    ReplayedServer,
    ServerSocket,
    read_recording,
    serve,
)
from informix_emulator.shop import DATABASE, LOCALE, PASSWORD, TABLE_NAMES, Workload

_NOT_A = {INFORMIX.name: f"an {INFORMIX.product}", GBASE_8S.name: f"a {GBASE_8S.product}"}
# Options of the recording that a client must repeat, or its requests differ from the recorded ones.
_REPEATED = ("dialect", "columns", "unsupportedColumns", "lobs", "dbLocale")


def serve_demo(
    server: EmulatedServer,
    host: str,
    port: int,
    transactions_per_second: float | None,
    dialect: str = INFORMIX.name,
    tls: ssl.SSLContext | None = None,
    certificate: Path | None = None,
) -> None:
    """Serve until interrupted; print how to connect, with `certificate` if that is what `tls` uses."""

    def when_ready(listening: ListeningServer) -> None:
        announce(listening, transactions_per_second, dialect, certificate)

    with _workload(server, transactions_per_second):
        serve(server, host, port, when_ready, tls)
    say("The emulator has stopped.")


def command_to_watch(
    listening: ListeningServer, dialect: str = INFORMIX.name, certificate: Path | None = None
) -> str:
    """Return a command that prints the changes, ready to be pasted."""
    given = {"server": listening.server.name}
    if listening.is_encrypted:
        given["encryption"] = TLS
    if certificate is not None:
        given["tlsCaFile"] = str(certificate.absolute())
    if dialect != INFORMIX.name:
        given["dialect"] = dialect
    given |= {"database": DATABASE, "table": ",".join(TABLE_NAMES)}
    return _tail(PASSWORD, listening.host, listening.port, given)


def _tail(password: str, host: str, port: int, options: Mapping[str, str]) -> str:
    given = {"transport": SQLI, "host": host, "port": str(port), **options}
    words = [word for name, value in given.items() for word in (flag_of(name), value)]
    return f"{PASSWORD_VARIABLE}={password} {command('tail', *words)}"


def jdbc_url(listening: ListeningServer) -> str:
    """Return the URL with which IBM's JDBC driver connects, without the password.

    DB_LOCALE must be that of the database, or the server refuses to open it with -23197.
    """
    server = listening.server
    settings = f"INFORMIXSERVER={server.name};user={server.owner};DELIMIDENT=Y;DB_LOCALE={LOCALE}"
    encrypted = ";SSLCONNECTION=true" if listening.is_encrypted else ""
    address = f"{listening.host}:{listening.port}"
    return f"jdbc:informix-sqli://{address}/{DATABASE}:{settings}{encrypted}"


def announce(
    listening: ListeningServer,
    transactions_per_second: float | None,
    dialect: str,
    certificate: Path | None = None,
) -> None:
    """Print the address of the emulator, a command that prints its changes, and the JDBC URL."""
    quiet = (
        "" if transactions_per_second else " Nothing writes to it: use --demo-workload 5 for changes."
    )
    say(
        f"An emulator, not {_NOT_A[dialect]} server, listens on {listening.host}:{listening.port}."
        f"{quiet} Press Ctrl-C to stop it. To print its changes, run:"
    )
    say_unbroken(command_to_watch(listening, dialect, certificate), to_stdout=True)
    if dialect == INFORMIX.name:  # the JDBC driver of GBASE uses another URL
        say("To connect with IBM's JDBC driver and the same password:")
        say_unbroken(jdbc_url(listening))


@contextlib.contextmanager
def _workload(server: EmulatedServer, transactions_per_second: float | None) -> Iterator[None]:
    if transactions_per_second is None:
        yield
        return
    stop = Event()
    workload = Workload(server, time.time_ns(), transactions_per_second, clears_up=True)
    thread = Thread(target=workload.run, args=(stop,), name="demo workload", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def serve_replay(path: Path, host: str, port: int) -> None:
    """Serve until interrupted; print how to connect.

    Raises:
        BadOption: the file is not a recording.
        OSError: the file cannot be read, or the port is in use.
    """
    try:
        recording = read_recording(path)
    except BadRecording as reason:
        raise BadOption(str(reason), "Record it again, or copy the file again.") from None
    replayed = ReplayedServer(recording)
    with ServerSocket(replayed.connect, host, port, greeting=replayed.greeting) as listener:
        version = recording.header["server"].get("version", "unknown version")
        say(
            f"Replaying a recording of {recording.server_name} ({version}), not a server, on"
            f" {listener.host}:{listener.port}. Press Ctrl-C to stop. A capture that reads to"
            " the end of the recording fails with 'the recording ends here'. To print its"
            " changes, run:"
        )
        shown = command_to_watch_replay(recording, listener.host, listener.port)
        say_unbroken(shown, to_stdout=True)
        listener.serve_forever()
    say("The replay has stopped.")


def command_to_watch_replay(recording: Recording, host: str, port: int) -> str:
    """Return a command that prints the changes, ready to be pasted; the replay accepts any password."""
    options: Mapping[str, Any] = recording.header.get("options", {})
    defaults = {name: default for name, default, _ in option_rows()}
    given = {"server": recording.server_name, "database": options.get("database", "")}
    given["table"] = options.get("table", "")
    for name in _REPEATED:
        if (value := str(options.get(name, ""))) not in ("", defaults[name]):
            given[name] = value
    return _tail("any", host, port, given) + " --yes"  # a replay changes nothing
