"""`informix-cdc emulator --replay FILE`: say again what a recording holds."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from informix_capture_client.emulator import (
    BadRecording,
    Listener,
    Recording,
    ReplayedServer,
    read_recording,
)
from informix_capture_client.errors import BadOption
from informix_cdc.options.source import PASSWORD_VARIABLE, option_rows
from informix_cdc.terminal.options import flag_of

# Options of the recording that a client must repeat, else it asks other questions.
_REPEATED = ("dialect", "columns", "unsupportedColumns", "lobs", "readTimeoutSeconds", "dbLocale")


def serve_replay(path: Path, host: str, port: int) -> None:
    """Serve until interrupted; tell how to connect.

    Raises:
        BadOption: the file is no recording.
        OSError: it cannot be read, or the port is taken.
    """
    try:
        recording = read_recording(path)
    except BadRecording as reason:
        raise BadOption(str(reason), "Record it anew, or copy the file again.") from None
    with Listener(ReplayedServer(recording).connect, host, port) as listener:
        version = recording.header["server"].get("version", "version not told")
        click.echo(
            f"A recording of {recording.server_name} ({version}), not a server, is replayed on"
            f" {listener.host}:{listener.port}. Ctrl-C ends it. Who reads to its end is refused there:"
            " 'the recording ends here'. To watch it:",
            err=True,
        )
        click.echo(tail_command(recording, listener.host, listener.port))
        listener.serve_forever()
    click.echo("The replay has ended.", err=True)


def tail_command(recording: Recording, host: str, port: int) -> str:
    """Return a command that shows the changes, ready to be copied; any password is taken."""
    options: Mapping[str, Any] = recording.header.get("options", {})
    defaults = {name: default for name, default, _ in option_rows()}
    given = {"server": recording.server_name, "database": options.get("database", "")}
    given["table"] = options.get("table", "")
    for name in _REPEATED:
        if (value := str(options.get(name, ""))) not in ("", defaults[name]):
            given[name] = value
    words = [f"{flag_of(name)} {shlex.quote(str(value))}" for name, value in given.items()]
    return (
        f"{PASSWORD_VARIABLE}=any informix-cdc tail --transport emulator --host {host} --port {port} "
        + " ".join(words)
    )
