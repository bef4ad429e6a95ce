"""`informix-cdc readers FOLDER`: list the registered readers of a capture, or remove one."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click
from rich.table import Table

from informix_capture_client.errors import BadOption
from informix_capture_client.positions import show
from informix_capture_client.printable import printable, shown_bytes
from informix_cdc.reading import CaptureAccess, CaptureFolder
from informix_cdc.terminal import answers, echo_json, say
from informix_checkpoints.readers import Readers, waiting_for


def print_readers(folder: Path, *, as_json: bool) -> None:
    """Print each reader: how far behind it is, and when it was seen last.

    Raises:
        BadOption: there is no capture in the folder.
    """
    shared = CaptureFolder(folder)
    offset = shared.published.offset
    spool = shared.spool(offset.stream) if offset is not None else None
    manifest = spool.manifest if spool is not None else None
    found = []
    for each in shared.readers.all():
        rows, size_bytes = waiting_for(each, manifest) if manifest else (0, 0)
        found.append(
            {
                "reader": each.name,
                "stream": each.stream,
                "position": show(each.taken.commit),
                "waiting_rows": rows,
                "waiting_bytes": size_bytes,
                "seen_seconds_ago": round(max(0.0, time.time() - each.seen_at)),
            }
        )
    if as_json:
        stream = offset.stream if offset else None
        known = {"stream": stream, "running": shared.is_running, "readers": found}
        echo_json(json.dumps(known))
        return
    state = "running" if shared.is_running else "not running on this host"
    say(f"The capture of {folder} is {state}.")
    if not found:
        say("No reader is registered: rows are kept until retention or retentionBytes is reached.")
        return
    table = Table("reader", "position", "rows waiting", "bytes waiting", "last seen", box=None)
    for line in found:
        table.add_row(
            printable(str(line["reader"])),
            str(line["position"]),
            f"{line['waiting_rows']:,}",
            shown_bytes(int(str(line["waiting_bytes"]))),
            f"{line['seen_seconds_ago']} s ago",
        )
    answers().print(table)


def add_reader(folder: Path, name: str) -> None:
    """Print the file with which a reader on another host is admitted; an earlier one becomes invalid.

    Raises:
        BadOption: it is not a name.
    """
    click.echo(CaptureAccess(folder).add(name).to_text(), nl=False)
    say(f"This is the file of reader {name}, for option readerFile. Only the reader may see it.")


def renew_readers(folder: Path, into: Path) -> None:
    """Write new files of all readers into a folder; no earlier file is valid any more.

    Raises:
        BadOption: there is no reader, or a file cannot be written.
    """
    if not CaptureAccess(folder).admitted():
        raise BadOption(
            f"no reader of {folder} has a file.",
            f"Run: informix-cdc readers {folder} --add NAME > FILE",
        )
    try:
        into.mkdir(mode=0o700, parents=True)  # a new one: nothing is overwritten
    except OSError as reason:
        raise BadOption(
            f"option '--renew': {into} cannot be created: {reason.strerror}.", "Name another folder."
        ) from None
    for access in CaptureAccess(folder).renew():
        path = into / f"{access.reader}.reader"
        path.touch(0o600)
        path.write_text(access.to_text())
    say(f"Wrote new files of all readers to {into}: copy each to its reader, and restart the queries.")


def remove_reader(folder: Path, name: str) -> None:
    """Remove a reader, and let it in no longer.

    Raises:
        BadOption: it is not registered.
    """
    had_token, was_registered = CaptureAccess(folder).remove(name), Readers(folder).remove(name)
    if not (had_token or was_registered):
        raise BadOption(
            f"{name!r} is not a registered reader of {folder}.",
            f"Run: informix-cdc readers {folder}",
        )
    say(f"Removed reader {name}. The capture keeps no rows for it.")
