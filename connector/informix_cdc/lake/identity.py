"""What a mirror is, and what it has written, as its checkpoint knows it.

Rule: an identity is made at the first start and kept in the checkpoint and in the lake. A witness is
written after the targets and before Spark's commit, so that a target never has less than it says.

    mirror/identity.json    id, epoch, and the settings that may not change
    mirror/witness/N        of batch number N: number and version of each table that it has changed
    mirror/stopped.json     why tables are no longer mirrored, for commands that do not open the lake
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields

from informix_capture_client.errors import BadOption
from informix_cdc.lake.settings import MirrorSettings
from informix_checkpoints.json_values import mapping, number, text
from informix_checkpoints.offsets import CheckpointFolder

_FORMAT = 1
_IDENTITY, _WITNESS, _STOPPED = "mirror/identity.json", "mirror/witness", "mirror/stopped.json"
_MOST_WITNESSES = 50  # one of all tables then replaces those before it
_BATCHES = 1 << 40  # in an epoch


def number_of(epoch: int, batch: int) -> int:
    """Return the number that a target stores with its rows; it rises over all epochs."""
    return epoch * _BATCHES + batch


def epoch_of(stored: int) -> int:
    """Return the epoch of a stored number."""
    return stored // _BATCHES


def batch_of(stored: int) -> int:
    """Return the batch of a stored number, in its epoch."""
    return stored % _BATCHES


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """Where a batch ends: its stream, and the place in it."""

    stream: str
    commit: int
    chunk: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A mirror, by what may not change while it exists.

    Attributes:
        id: made at the first start.
        server, database: of the tables; empty if they are not known.
    """

    id: str = field(default_factory=lambda: secrets.token_hex(8))
    into: str
    server: str
    database: str
    format: str
    keep: str
    table_name: str

    @classmethod
    def of(cls, settings: MirrorSettings, server: str, database: str) -> Identity:
        """Return the identity of a mirror that is new."""
        return cls(
            into=_place(settings.into),
            server=server,
            database=database,
            format=settings.format,
            keep=settings.keep,
            table_name=settings.table_name,
        )

    @property
    def application(self) -> str:
        """The application identifier under which targets store numbers."""
        return f"informix-cdc/{self.id}"

    def differences(self, known: Identity) -> list[str]:
        """Return what differs from a stored identity, each with both values; `id` is not compared."""
        return [
            f"{each.name} was {json.dumps(was)} and is {json.dumps(now)}"
            for each in fields(self)
            if each.name != "id"
            and (was := getattr(known, each.name)) != (now := getattr(self, each.name))
            and (was and now)
        ]


def _place(into: str) -> str:
    """Return a place without what may change: who reads it, and how a path is written."""
    if into.startswith("postgres"):
        return re.sub("//[^/@]*@", "//", into)
    return into.rstrip("/").removeprefix("file://") or "/"


@dataclass(frozen=True, slots=True)
class Witnessed:
    """What a table had when the checkpoint last heard of it: a batch number, and a version."""

    number: int
    version: int


class MirrorFolder:
    """The files of a mirror in a checkpoint.

    Args:
        checkpoint: as in `MirrorSettings`.

    Raises:
        AccessRefused: it cannot be read.
        BadOption: a file in it was not written by a mirror of this version.
    """

    def __init__(self, checkpoint: str) -> None:
        self._folder = CheckpointFolder(checkpoint)
        self.identity: Identity | None = None
        self.epoch = 0
        content = self._folder.content(_IDENTITY)
        if content is not None:
            with _reading(f"{self._folder}/{_IDENTITY}"):
                known = _content(content)
                self.epoch = number(known.pop("epoch"))
                self.identity = Identity(**{name: text(value) for name, value in known.items()})
        self._files = self._folder.batches(_WITNESS)
        self.witnessed = dict(self._read())
        self.stopped: dict[str, str] | None = None  # as last written

    def _read(self) -> Iterator[tuple[str, Witnessed]]:
        """Yield what the files say, oldest first: the last one about a table is right."""
        found = []
        for each in reversed(self._files):
            data = self._folder.content(f"{_WITNESS}/{each}")
            if not data:  # torn by a power failure: the one before it says less, and no wrong thing
                continue
            with _reading(f"{self._folder}/{_WITNESS}/{each}"):
                content = _content(data)
                targets = mapping(content.get("targets"), "targets")
                found.append({text(name): Witnessed(*_pair(pair)) for name, pair in targets.items()})
            if content.get("of_all"):
                break
        for targets_then in reversed(found):
            yield from targets_then.items()

    def begin(self, identity: Identity, epoch: int, witnessed: Mapping[str, Witnessed]) -> None:
        """Write the identity of an epoch that begins, and what the tables have then."""
        self.identity, self.epoch, self.witnessed = identity, epoch, dict(witnessed)
        self._write(number_of(epoch, 0), witnessed, of_all=True, durable=True)
        content = {"version": _FORMAT, "epoch": epoch, **asdict(identity)}
        self._folder.write(_IDENTITY, json.dumps(content).encode(), durable=True)

    def record(self, stored: int, changed: Mapping[str, Witnessed]) -> None:
        """Write what a batch has changed."""
        self.witnessed.update(changed)
        of_all = len(self._files) >= _MOST_WITNESSES
        self._write(stored, self.witnessed if of_all else changed, of_all=of_all)

    def record_stopped(self, stopped: Mapping[str, str]) -> None:
        """Write which tables are no longer mirrored, with reasons, if that has changed."""
        if stopped != self.stopped:
            self.stopped = dict(stopped)
            content = {"version": _FORMAT, "stopped": self.stopped}
            self._folder.write(_STOPPED, json.dumps(content).encode())

    def _write(
        self,
        stored: int,
        targets: Mapping[str, Witnessed],
        *,
        of_all: bool,
        durable: bool = False,
    ) -> None:
        pairs = {name: [each.number, each.version] for name, each in sorted(targets.items())}
        content = {"version": _FORMAT, "of_all": of_all, "targets": pairs}
        self._folder.write(f"{_WITNESS}/{stored}", json.dumps(content).encode(), durable=durable)
        for old in self._files if of_all else ():
            if old != stored:
                self._folder.remove(f"{_WITNESS}/{old}")
        self._files = [stored] if of_all else [*self._files, stored]


def known_identity(checkpoint: str) -> Identity:
    """Return the identity of the mirror of a checkpoint.

    Raises:
        BadOption: it has none.
    """
    if (identity := MirrorFolder(checkpoint).identity) is None:
        raise BadOption(
            f"{CheckpointFolder(checkpoint)} is not the checkpoint of a mirror that has begun.",
            "Start the mirror; or give checkpoint of one that has begun.",
        )
    return identity


def stopped_tables(checkpoint: str) -> dict[str, str]:
    """Return the tables of a checkpoint that its mirror has stopped, with reasons.

    Raises:
        AccessRefused: it cannot be read.
        BadOption: no mirror of this version wrote it.
    """
    folder = CheckpointFolder(checkpoint)
    if not (content := folder.content(_STOPPED)):  # not a mirror's, or torn by a power failure
        return {}
    with _reading(f"{folder}/{_STOPPED}"):
        found = mapping(_content(content).get("stopped"), "stopped")
        return {text(table): text(why) for table, why in found.items()}


@contextlib.contextmanager
def _reading(path: str) -> Iterator[None]:
    """Name the file whose content is not what a mirror writes."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as reason:
        raise BadOption(
            f"{path} is damaged, or another version of informix-cdc wrote it: {reason}.",
            "Use the version that wrote it. If it is damaged, move the folder mirror of the"
            " checkpoint away, and start the mirror with onDataLoss=resync.",
        ) from None


def _content(data: bytes | None) -> dict[str, object]:
    found = dict(mapping(json.loads(data or b""), "an object"))
    if (kind := found.pop("version", None)) != _FORMAT:
        raise ValueError(f"its version is {kind!r}")
    return found


def _pair(given: object) -> tuple[int, int]:
    if not isinstance(given, list) or len(given) != 2:
        raise ValueError(f"{given!r} is not a number and a version")
    return number(given[0]), number(given[1])
