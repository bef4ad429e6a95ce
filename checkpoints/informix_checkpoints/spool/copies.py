"""Copies of a stream's segments under a URL, for executors without access to the spool's folder.

Rule: copies are never authoritative. Manifest, lock and commit point are in the spool's folder. A copy
is written before the manifest names its segment, is never changed, and is removed with its segment. Its
name has the segment's checksum, because a stream that is captured again reuses segment numbers. It has
the bytes of the segment's file, whose size and checksum are in every range, so that executors can
verify it.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from informix_capture_client.errors import AccessRefused
from informix_capture_client.log_events import COPY_NOT_REMOVED
from informix_checkpoints.spool.segments import (
    Segment,
    SegmentRange,
    changes_in,
    checksum_of,
    sound,
)

if TYPE_CHECKING:
    from pyarrow import fs

logger = logging.getLogger("informix_cdc.checkpoints.segment_copies")  # a name in logs, not a module

_DELETIONS_AT_ONCE = 8  # an object store takes tens of milliseconds for each
# Where a file can be written aside and then moved. Object stores show a file only when it is whole.
_CAN_MOVE = {"local", "hdfs"}


class Copies(Protocol):
    """Where a spool puts copies of its segments."""

    def match(self, folder: Path, segments: Iterable[Segment]) -> None:
        """Make the copies match these segments."""

    def put(self, path: Path, segment: Segment) -> None:
        """Copy a segment's file."""

    def remove(self, segments: Iterable[Segment]) -> None:
        """Remove copies; any that cannot be removed are removed when the spool is next opened."""


class NoCopies:
    """No copies: executors can read the spool's folder, or get rows in another way."""

    def match(self, folder: Path, segments: Iterable[Segment]) -> None:
        """Do nothing."""

    def put(self, path: Path, segment: Segment) -> None:
        """Do nothing."""

    def remove(self, segments: Iterable[Segment]) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class SegmentCopies:
    """Copies of one stream's segments in a separate folder; can be pickled.

    Args:
        url: of a folder, for `pyarrow.fs`; credentials come from the environment of each host.
        stream: the id of the stream.
    """

    url: str
    stream: str

    def match(self, folder: Path, segments: Iterable[Segment]) -> None:
        """Make the copies match these segments: add missing copies, and remove others.

        Raises:
            AccessRefused: the location cannot be reached or written, or a segment is corrupt.
        """
        wanted = {_copy_name(segment): segment for segment in segments}
        with self._named_errors():
            self._system.create_dir(self._folder, recursive=True)
            found = {Path(info.path).name: info.size for info in self._infos()}
            whole = {
                name
                for name, segment in wanted.items()
                if found.get(name) == segment.size_bytes and not self._is_torn(name, segment)
            }
        self._delete(found.keys() - whole)
        for name in wanted.keys() - whole:
            self.put(folder / wanted[name].file, wanted[name])

    def put(self, path: Path, segment: Segment) -> None:
        """Copy a segment's file.

        Raises:
            AccessRefused: the location cannot be reached or written, or the segment is corrupt.
        """
        target = f"{self._folder}/{_copy_name(segment)}"
        draft = f"{target}.draft" if self._system.type_name in _CAN_MOVE else target
        with self._named_errors():
            with sound(path, segment) as whole, self._system.open_output_stream(draft) as file:
                file.write(whole.read_buffer())
            if draft != target:
                self._system.move(draft, target)

    def remove(self, segments: Iterable[Segment]) -> None:
        """Remove copies; any that cannot be removed are removed when the spool is next opened."""
        self._delete({_copy_name(segment) for segment in segments})

    def stored_range(
        self, wanted: SegmentRange, *, whole_updates: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Return the stored changes of a range, as `segments.stored_range` does; can be called again.

        The copy's checksum is verified once per process: it is read twice the first time. That detects
        corruption, not tampering: see SECURITY.md on who may write there.

        Raises:
            AccessRefused: the copy does not exist, or differs from what was written.
        """
        name = _copy_name(wanted)
        with self._named_errors():
            if not _is_whole(self, name, wanted.size_bytes, wanted.checksum):
                raise AccessRefused(f"{name} under {self.url} differs from what was written.")
            return changes_in(self.open(name), wanted, whole_updates=whole_updates)

    def open(self, name: str) -> pa.NativeFile:
        """Open a copy for random access."""
        return self._system.open_input_file(f"{self._folder}/{name}")

    @property
    def _system(self) -> fs.FileSystem:
        return _opened(self.url)[0]

    @property
    def _folder(self) -> str:
        return f"{_opened(self.url)[1].rstrip('/')}/{self.stream}"

    def _infos(self) -> list[fs.FileInfo]:
        from pyarrow import fs

        return list(self._system.get_file_info(fs.FileSelector(self._folder)))

    def _is_torn(self, name: str, segment: Segment) -> bool:
        """Return whether a copy lost content in a power failure; copies are moved without a sync."""
        if self._system.type_name not in _CAN_MOVE:
            return False
        with self.open(name) as file:
            return checksum_of(file) != segment.checksum

    def _delete(self, names: Iterable[str]) -> None:
        with ThreadPoolExecutor(_DELETIONS_AT_ONCE) as pool:
            list(pool.map(self._delete_one, sorted(names)))

    def _delete_one(self, name: str) -> None:
        try:
            self._system.delete_file(f"{self._folder}/{name}")
        except FileNotFoundError:
            pass
        except (OSError, pa.ArrowException) as reason:
            COPY_NOT_REMOVED.log(logger, file=name, place=self.url, reason=reason)

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as reason:
            raise AccessRefused(
                f"the copies of segments under {self.url} cannot be written: {reason}.",
                "Correct option segmentCopies or the permissions there, or omit the option.",
                is_temporary=not isinstance(reason, _PERMANENT),
            ) from None


def copies_for(url: str, stream: str) -> Copies:
    """Return the copies of a stream's segments under `url`; no copies if it is empty."""
    return SegmentCopies(url, stream) if url else NoCopies()


_PERMANENT = (PermissionError, NotADirectoryError, IsADirectoryError)


def _copy_name(of: Segment | SegmentRange) -> str:
    return f"{Path(of.file).stem}-{of.checksum:08x}.arrow"


@functools.lru_cache(maxsize=8)
def _opened(url: str) -> tuple[fs.FileSystem, str]:
    from pyarrow import fs  # slow, and rarely needed

    system, folder = fs.FileSystem.from_uri(url)
    return system, folder


@functools.lru_cache(maxsize=1024)
def _is_whole(copies: SegmentCopies, name: str, size_bytes: int, checksum: int) -> bool:
    """Return whether a copy has the written bytes; cached, because copies never change."""
    with copies.open(name) as file:
        return file.size() == size_bytes and checksum_of(file) == checksum
