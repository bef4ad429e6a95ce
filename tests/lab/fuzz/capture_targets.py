"""The doors of a shared capture, and of files: what readers send, what is stored, what a user writes.

Rule: a content with a checksum gets the right one, so that noise is not all refused at the first look.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from checkpoints.spool.spools import SCHEMA, TABLE, batch
from harness.capture.shaped import delivery_of
from harness.capture.tables import make_table
from informix_capture_client.choices import RowForm
from informix_capture_client.errors import BadOption, ConnectionLost, DataLoss
from informix_capture_client.positions import Position
from informix_cdc.commands.configuration import read_capture_file, read_mirror_file
from informix_cdc.commands.ddl_script import changed_tables, statements_of
from informix_cdc.executors.flight_protocol import (
    Credentials,
    ReaderAccess,
    error_from_json,
    error_to_json,
    range_of,
    ticket_of,
)
from informix_cdc.reading.calls import (
    decoded,
    encoded,
    limits_from_json,
    limits_to_json,
    range_from_json,
    range_to_json,
)
from informix_cdc.server import TableDefinition
from informix_cdc.server.table_definitions import DeclaredColumn
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.readers import ReaderState
from informix_checkpoints.requests import (
    ALTER,
    Answer,
    Request,
    RequestFolder,
)
from informix_checkpoints.shared_captures import (
    FILE_NAME,
    PreviousStream,
    PublishedCapture,
    PublishedError,
    PublishedTable,
    load_published,
)
from informix_checkpoints.spool import manifest_files as manifests
from informix_checkpoints.spool.manifest import Manifest
from informix_checkpoints.spool.segments import Segment, SegmentRange, stored_range, write_segment
from informix_checkpoints.table_states import TableState

_STREAM = "0123456789abcdef"
OFFSET = StreamOffset(_STREAM, "d", Position(201863847960, 201863847000, (20, 21)))
_RANGE = SegmentRange("000001-000000000000.arrow", 0, 1, 2, 400, 7)
_AT = Position(110, 105, (3,))


def json_of(data: bytes) -> Any:
    """Return the value of JSON; None if it is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _checked(data: bytes) -> bytes:
    """Return the content of a file whose version and checksum are right."""
    given = json_of(data)
    if not isinstance(given, dict):
        return data
    content = {name: value for name, value in given.items() if name not in ("version", "checksum")}
    try:
        checksum = zlib.crc32(json.dumps(content).encode())
    except RecursionError:
        return data
    return json.dumps({"version": given.get("version", 1), "checksum": checksum, **content}).encode()


# what readers send, and are answered


def take_ticket(data: bytes) -> None:
    """Read the ticket of a range."""
    range_of(data, Path("/spool").joinpath)


def take_call(data: bytes) -> None:
    """Read all that a call or its answer may have."""
    given = decoded(data)
    for name, read in {"limits": limits_from_json, "range": range_from_json}.items():
        with contextlib.suppress(ValueError, TypeError):
            read(given.get(name))
    if isinstance(start := given.get("start"), dict):
        StreamOffset.from_json(start)


take_error = error_from_json
TICKETS = (ticket_of(_RANGE, _STREAM),)
CALLS = (
    encoded(
        {
            "reader": "r",
            "start": OFFSET.to_json(),
            "limits": limits_to_json(BatchLimits(rows=1)),
            "range": range_to_json(_RANGE),
        }
    ),
)
ERRORS = (error_to_json(ConnectionLost("It is gone.", "Start it.")),)


# files of a shared capture


def take_published(data: bytes) -> None:
    """Read what a capture publishes."""
    with _folder() as folder:
        (folder / FILE_NAME).write_bytes(_checked(data))
        if (found := load_published(folder)) is not None:
            assert PublishedCapture.from_json(found.to_json()) == found


def take_reader(data: bytes) -> None:
    """Read the place of a reader."""
    found = ReaderState.from_json("r", json_of(data), 0.0)
    assert ReaderState.from_json("r", found.to_json(), 0.0) == found


def take_request(data: bytes) -> None:
    """Read a request, its answer, and the files of an alter."""
    with _folder() as folder:
        requests = RequestFolder(folder)
        requests.path.mkdir()
        for name in ("1.json", "2.progress", "2.altered", "2.done"):
            (requests.path / name).write_bytes(data)
        for request in requests.pending():
            assert Request.from_json(request.to_json(), request.id) == request
        for read in (requests.progress, requests.gone, requests.answer):
            with contextlib.suppress(BadOption):
                read("2")


def take_access(data: bytes) -> None:
    """Read the file of a reader."""
    found = ReaderAccess.from_text(data.decode("utf-8", "replace"))
    assert ReaderAccess.from_text(found.to_text()) == found


def take_definition(data: bytes) -> None:
    """Read the definition of a table."""
    found = TableDefinition.from_text(data)
    assert TableDefinition.from_text(found.to_text()) == found


_DEFINITION = TableDefinition("informix.t", (DeclaredColumn("id", "INTEGER", False),), ("id",))
PUBLISHED = (
    json.dumps(
        PublishedCapture(
            tables=(PublishedTable(TABLE, SCHEMA.serialize().to_pybytes(), _DEFINITION.to_text()),),
            options={"server": "s"},
            offset=OFFSET,
            previous={"fedcba9876543210": PreviousStream((4, 0), _STREAM)},
            answered={"r": 1},
            error=PublishedError("IFXCDC-0001", "It is gone.", ""),
        ).to_json()
    ).encode(),
)
READERS = (json.dumps(ReaderState(name="r", run="1a", stream=_STREAM, taken=_AT).to_json()).encode(),)
REQUESTS = tuple(
    json.dumps(content).encode()
    for content in (
        Request(
            kind="resync", tables=("informix.t",), low="1", column="id", window="22:00-05:00"
        ).to_json(),
        Request(kind=ALTER, tables=("informix.t",), statements=("DROP TABLE t",)).to_json(),
        Answer((1, 2), {"informix.t": 3}, {"": "no"}).to_json(),
        {"statement": 1, "layouts": {"informix.t": "a"}, "failed": "", "gone": ["informix.t"]},
    )
)
ACCESS = (ReaderAccess("r", "token", Credentials(b"a", b"c", b"k")).to_text().encode(),)
DEFINITIONS = (_DEFINITION.to_text().encode(),)


# the spool


def take_manifest(data: bytes) -> None:
    """Read a manifest, as it is and with the right checksum."""
    for content in (data, _checked(data)):
        with _folder() as folder, contextlib.suppress(DataLoss):
            (folder / manifests.FILE_NAME).write_bytes(content)
            manifests.load_manifest(folder)


def take_journal(data: bytes) -> None:
    """Read a journal, as it is and with the right checksum in each line."""
    lines = data.splitlines()
    checked = b"".join(b"%08x %b\n" % (zlib.crc32(line), line) for line in lines)
    for content in (data, checked):
        with _folder() as folder, contextlib.suppress(DataLoss):
            manifests.save_manifest(_MANIFEST, folder, durable=False)
            manifests.journal_of(folder, _MANIFEST).write_bytes(content)
            manifests.load_manifest(folder)


def take_segment(data: bytes) -> None:
    """Read a segment that is damaged, or has other bytes."""
    with _folder() as folder:
        sound = _segment(folder)
        path = folder / sound.file
        path.write_bytes(data)
        wanted = SegmentRange(str(path), 0, sound.rows, sound.rows, sound.size_bytes, sound.checksum)
        for stored in stored_range(wanted):
            stored.validate(full=True)


def take_form(data: bytes) -> None:
    """Read a segment whose form, kinds and tables are described in another way."""
    about = dict(zip(SCHEMA.metadata, data.split(b"\n"), strict=False))
    stored = batch((1, 11), (None, 11)).replace_schema_metadata(about)
    for form in _ROW_FORMS:
        with contextlib.suppress(DataLoss):
            for rows in delivery_of([make_table("items", "n int8")], form).rows([stored]):
                rows.validate(full=True)


def _segment(folder: Path) -> Segment:
    return write_segment(folder / "1.arrow", SCHEMA, [batch((1, 11), (2, 11))], _AT, durable=False)


def _written() -> Iterator[bytes]:
    with _folder() as folder:
        manifests.save_manifest(_MANIFEST, folder, durable=False)
        yield (folder / manifests.FILE_NAME).read_bytes()
        manifests.append_segment(_SEGMENT, folder / "journal", durable=False)
        yield (folder / "journal").read_bytes().partition(b" ")[2]
        yield (folder / _segment(folder).file).read_bytes()


_ROW_FORMS = (
    RowForm(shape="rows", truncate="emit"),
    RowForm(shape="json", truncate="emit"),
    RowForm(shape="arrow", truncate="emit"),
    RowForm(shape="envelope", truncate="emit"),
)
_SEGMENT = Segment("000001-000000000000.arrow", 2, 400, 7, 1, 110, _AT)
_MANIFEST = Manifest(
    *("s", "d", Position(100, 90), Position(111, 111), "r", 1, (_SEGMENT,), 1),
    tables={"informix.t": TableState("d")},
)
MANIFESTS, JOURNALS, SEGMENTS = ((content,) for content in _written())
FORMS = (b"\n".join(SCHEMA.metadata.values()),)


# what a user writes


def _file(read: Callable[[Path], object]) -> Callable[[bytes], None]:
    def take(data: bytes) -> None:
        with _folder() as folder:
            path = folder / "given.toml"
            path.write_bytes(data)
            read(path)

    return take


def take_script(data: bytes) -> None:
    """Read a script of DDL."""
    changed_tables(statements_of(data.decode("utf-8", "replace")), ["informix.orders", 'a."B c"'])


take_capture_file = _file(read_capture_file)
take_mirror_file = _file(read_mirror_file)
_SOURCE = b"""
[source]
host = "h"
server = "s"
database = "d"
table = ["informix.*"]
spoolPath = "/spool"
authentication = "trusted"
mask = 'customers.ssn=last4'
"""
CAPTURE_FILES = (
    b'retention = "7 days"\nretentionBytes = "1g"\nlisten = "0.0.0.0:8815"\nmirror = true\n' + _SOURCE,
)
MIRROR_FILES = (
    b'into = "/lake"\ncheckpoint = "/checkpoint"\ntrigger = "10 seconds"\nretain = "2 days"\n'
    + b'metrics_address = "9000"\ntable_name = "{owner}_{table}"\nstorage_options = {a = "b"}\n'
    + _SOURCE
    + b'[tables."informix.t"]\nkey = "a, \\"b c\\""\nkeep = "history"\n'
    + b'[spark]\n"spark.master" = "local"\n',
)
SCRIPTS = (
    b'ALTER TABLE orders ADD (n INT); -- old\nRENAME COLUMN shop:a."B c".note TO x; /* */ {x}',
    b"CREATE RAW TABLE IF NOT EXISTS informix.orders (a SET(INT)); INSERT INTO b VALUES ('x;')",
)
