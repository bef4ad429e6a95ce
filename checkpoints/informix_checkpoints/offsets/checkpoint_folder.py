"""The files of a Spark checkpoint, local or under a URL.

Rule: Spark's own files are listed and read only; `spark_checkpoint.py` interprets them. Files of this
package lie beside them, each written whole. An error names the location without the secrets of a URL.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa

from informix_capture_client.errors import AccessRefused, BadOption

if TYPE_CHECKING:
    from pyarrow import fs

_MOST_BYTES = 16 * 1024 * 1024  # Spark's file of one batch is a few kilobytes
_MOST_TOLD = 200  # characters: where libhdfs lacks Java it lists dozens of paths
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
_NUMBER = re.compile(r"[0-9]{1,18}")
# Spark and Hadoop say s3a where everybody else says s3.
_HADOOP_SCHEMES = {"s3a://": "s3://", "s3n://": "s3://", "file:///": "file:///", "file:/": "file:///"}


class CheckpointFolder:
    """A checkpoint's folder.

    Args:
        place: a local path, or a URL of `pyarrow.fs` in Spark's or its own spelling.

    Raises:
        BadOption: the URL's file system is not supported.
    """

    def __init__(self, place: str) -> None:
        self._place, self._shown = place, _without_secrets(place)
        with self._named_errors():
            self._system, self._path = _opened(place)

    def __str__(self) -> str:
        return self._shown.rstrip("/")

    def is_there(self) -> bool:
        """Return whether the folder exists.

        Raises:
            AccessRefused: this cannot be determined.
        """
        from pyarrow import fs

        with self._named_errors():
            return bool(self._system.get_file_info(self._path).type == fs.FileType.Directory)

    def path_of(self, kind: str, number: int) -> str:
        """Return a file's path for messages."""
        return f"{self}/{kind}/{number}"

    def batches(self, kind: str) -> list[int]:
        """Return the numbers of the batches in folder `offsets` or `commits`, rising.

        Raises:
            AccessRefused: the folder cannot be read.
        """
        from pyarrow import fs

        selector = fs.FileSelector(f"{self._path}/{kind}", allow_not_found=True)
        with self._named_errors():
            names = [info.base_name for info in self._system.get_file_info(selector) if info.is_file]
        return sorted(int(name) for name in names if _NUMBER.fullmatch(name))

    def text(self, kind: str, number: int, remedy: str) -> str:
        """Return the text of a batch's file.

        Raises:
            BadOption: the file is missing, or is not text.
            AccessRefused: it cannot be read.
        """
        path = self.path_of(kind, number)
        try:
            with self._named_errors():
                return self._read(f"{self._path}/{kind}/{number}").decode()
        except FileNotFoundError:
            raise BadOption(f"{path} is missing.", remedy) from None
        except UnicodeDecodeError:
            raise BadOption(f"{path} is not text.", remedy) from None

    def content(self, name: str) -> bytes | None:
        """Return the content of a file; None if it does not exist.

        Args:
            name: its path in the folder.

        Raises:
            AccessRefused: it cannot be read.
        """
        try:
            with self._named_errors():
                return self._read(f"{self._path}/{name}")
        except FileNotFoundError:
            return None

    # files of this package

    @property
    def local(self) -> Path | None:
        """The folder as a local path; None if it is not local."""
        from pyarrow import fs

        return Path(self._path) if isinstance(self._system, fs.LocalFileSystem) else None

    def write(self, name: str, content: bytes, *, durable: bool = False) -> None:
        """Write a file of this package, as a whole or not at all.

        Args:
            name: its path in the folder.
            content: of the file.
            durable: whether it outlives a power failure, which may tear a local file otherwise.

        Raises:
            AccessRefused: it cannot be written.
        """
        path = f"{self._path}/{name}"
        with self._named_errors("written"):
            self._system.create_dir(path.rpartition("/")[0], recursive=True)
            # An object store has no part of an object; elsewhere a file appears when it is renamed.
            written = path if self.local is None else f"{path}.tmp"
            with self._system.open_output_stream(written) as file:
                file.write(content)
            if written != path:
                if durable:
                    _sync(Path(written))
                self._system.move(written, path)
                if durable:
                    _sync(Path(path).parent)

    def remove(self, name: str) -> None:
        """Remove a file of this package.

        Raises:
            AccessRefused: it cannot be removed.
        """
        with contextlib.suppress(FileNotFoundError), self._named_errors("written"):
            self._system.delete_file(f"{self._path}/{name}")

    def _read(self, path: str) -> bytes:
        with self._system.open_input_stream(path) as file:
            return bytes(file.read(_MOST_BYTES))

    @contextlib.contextmanager
    def _named_errors(self, done: str = "read") -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except pa.ArrowInvalid as reason:
            raise BadOption(
                f"the location of checkpoint {self} is not supported: {self._described(reason)}.",
                "Use a local path, or a URL such as s3://bucket/path or hdfs://host:port/path.",
            ) from None
        except (OSError, pa.ArrowException) as reason:
            raise AccessRefused(
                f"the checkpoint {self} cannot be {done}: {self._described(reason)}.",
                "Check the location and your permissions.",
            ) from None

    def _described(self, reason: Exception) -> str:
        words = " ".join(str(reason).replace(self._place, self._shown).split()).rstrip(".")
        return words if len(words) <= _MOST_TOLD else words[:_MOST_TOLD] + "…"


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _opened(place: str) -> tuple[fs.FileSystem, str]:
    from pyarrow import fs  # slow, and not needed for --help

    for hadoop, plain in _HADOOP_SCHEMES.items():
        if place.startswith(hadoop):
            place = plain + place.removeprefix(hadoop)
            break
    if not _URL.match(place):
        place = str(Path(place).expanduser().absolute())
    system, path = fs.FileSystem.from_uri(place)
    return system, path.rstrip("/")


def _without_secrets(place: str) -> str:
    """Return a URL without user, password and parameters."""
    if not _URL.match(place):
        return place
    try:
        url = urlsplit(place)
    except ValueError:
        return "(not a URL)"
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
