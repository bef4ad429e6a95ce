"""Where a table lies: a folder or an object store, whose files can be written if they are not there.

Rule: errors of the store are OSErrors. A file that is read whole is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import obstore
import pyarrow as pa
from deltalake.fs import DeltaStorageHandler
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError
from obstore.store import LocalStore, from_url
from pyarrow.fs import FileSystem, LocalFileSystem, PyFileSystem, SubTreeFileSystem

_FOUND = pa.schema(
    [("path", pa.string()), ("last_modified", pa.timestamp("us", "UTC")), ("size", pa.uint64())]
)
_REMOVED_AT_ONCE = 1000
_MOST_BYTES = 1 << 30  # of a file that is read whole
# What delta-rs takes among its storage options, and obstore elsewhere.
_OF_CLIENTS = {"allow_http", "aws_allow_http", "azure_allow_http", "timeout", "connect_timeout"}
_OF_RETRIES = {"max_retries", "retry_timeout"}


@dataclass(frozen=True)
class TablePlace:
    """The folder of a table.

    Args:
        name: a path or URL.
        options: of delta-rs, for object stores.
    """

    name: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @cached_property
    def files(self) -> FileSystem:
        """The files below the folder, for readers of Parquet."""
        if self._folder is not None:
            return SubTreeFileSystem(str(self._folder), LocalFileSystem())
        return PyFileSystem(DeltaStorageHandler(self.name, dict(self.options)))

    @cached_property
    def _folder(self) -> Path | None:
        is_url = "://" in self.name and not self.name.startswith("file://")
        return None if is_url else Path(self.name.removeprefix("file://"))

    @cached_property
    def _store(self) -> Any:  # noqa: ANN401 - obstore's stores have no common class
        if self._folder is not None:
            return LocalStore(self._folder, mkdir=True)
        lower = {name.lower(): value for name, value in self.options.items()}
        allows_http = "true" in (lower.get("aws_allow_http"), lower.get("allow_http"))
        retries: dict[str, Any] = {}
        if "max_retries" in lower:
            retries["max_retries"] = int(lower["max_retries"])
        if "retry_timeout" in lower:
            retries["retry_timeout"] = timedelta(seconds=float(lower["retry_timeout"].rstrip("s")))
        config: Any = {n: v for n, v in lower.items() if n not in _OF_CLIENTS | _OF_RETRIES}
        client: Any = {"allow_http": allows_http}
        wait: Any = retries or None
        return from_url(self.name, config=config, client_options=client, retry_config=wait)

    @property
    def _is_nowhere(self) -> bool:
        """Whether it is a folder that is not there; it is made by the first write."""
        return self._folder is not None and not self._folder.exists()

    def found(self, folder: str = "", after: str = "") -> pa.Table:
        """Return path, last_modified and size of all files in a folder, and in those in it.

        Args:
            folder: empty: all files of the table.
            after: the name after which names begin in alphabetical order.
        """
        parts = []
        if not self._is_nowhere:
            with _os_errors():
                offset = f"{folder}/{after}" if after else None
                stream = obstore.list(self._store, folder or None, offset=offset, return_arrow=True)
                parts = [pa.table(batch) for batch in stream]
        return pa.concat_tables(
            [_FOUND.empty_table(), *(each.select(_FOUND.names).cast(_FOUND) for each in parts)]
        )

    def listed(self, folder: str, after: str = "") -> list[str]:
        """Return the names of the files in a folder, those after a name."""
        paths: list[str] = self.found(folder, after).column("path").to_pylist()
        names = (path.removeprefix(f"{folder}/") for path in paths)
        return [name for name in names if "/" not in name]

    def is_there(self, path: str) -> bool:
        """Return whether there is a file."""
        try:
            with _os_errors():
                return not self._is_nowhere and bool(obstore.head(self._store, path))
        except FileNotFoundError:
            return False

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; None if there is none."""
        if self._is_nowhere:
            return None
        try:
            with _os_errors():
                found = obstore.get(self._store, path)
                if found.meta["size"] > _MOST_BYTES:
                    raise OSError(f"{path} in {self.name} has more than {_MOST_BYTES} bytes")
                return bytes(found.bytes())
        except FileNotFoundError:
            return None

    def put(self, path: str, content: bytes) -> None:
        """Write a file that nobody else writes."""
        with _os_errors():
            obstore.put(self._store, path, content)

    def put_if_absent(self, path: str, content: bytes) -> bool:
        """Write a file whole, unless it is there; return whether it was written."""
        try:
            with _os_errors():
                obstore.put(self._store, path, content, mode="create")
        except FileExistsError:
            return False
        return True

    def remove(self, path: str) -> None:
        """Remove a file."""
        with _os_errors():
            obstore.delete(self._store, path)

    def remove_all(self, paths: Sequence[str]) -> None:
        """Remove files, many at a time; those that are not there are left out."""
        for first in range(0, len(paths), _REMOVED_AT_ONCE):
            some = list(paths[first : first + _REMOVED_AT_ONCE])
            try:
                with _os_errors():
                    obstore.delete(self._store, some)
            except FileNotFoundError:  # some may be left
                for path in some:
                    with suppress(FileNotFoundError):
                        self.remove(path)

    def puts_if_absent(self) -> bool:
        """Return whether the store refuses to write a file that is there: it is tried."""
        path = f"_informix_cdc_probe_{uuid4().hex}"
        try:
            return self.put_if_absent(path, b"1") and not self.put_if_absent(path, b"2")
        finally:
            self.remove(path)


@contextmanager
def _os_errors() -> Iterator[None]:
    """Raise errors of obstore as errors of Python: of its notes for developers, only the system's."""
    try:
        yield
    except BaseError as error:
        kind = next((kind for of, kind in _KINDS.items() if isinstance(error, of)), OSError)
        text, _, notes = str(error).partition("\n\nDebug source:")
        of_system = _OF_SYSTEM.search(notes)
        raise kind(f"{text}: {of_system[1]}" if of_system else text) from None


_OF_SYSTEM = re.compile(r'\bOs \{[^}]*message: "([^"]+)"')
_KINDS: dict[type[BaseError], type[OSError]] = {
    AlreadyExistsError: FileExistsError,
    PermissionDeniedError: PermissionError,
}
