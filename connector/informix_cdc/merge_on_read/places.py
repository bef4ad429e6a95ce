"""Where a table lies: a folder or an object store, whose files can be written if they are not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import obstore
from deltalake.fs import DeltaStorageHandler
from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore, from_url
from pyarrow.fs import FileSystem, PyFileSystem

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
        """The files below the folder, to read."""
        return PyFileSystem(DeltaStorageHandler(self.name, dict(self.options)))

    @cached_property
    def _store(self) -> Any:  # noqa: ANN401 - obstore's stores have no common class
        if "://" not in self.name or self.name.startswith("file://"):
            return LocalStore(Path(self.name.removeprefix("file://")), mkdir=True)
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

    def put(self, path: str, content: bytes) -> None:
        """Write a file that nobody else writes."""
        obstore.put(self._store, path, content)

    def put_if_absent(self, path: str, content: bytes) -> bool:
        """Write a file whole, unless it is there; return whether it was written."""
        try:
            obstore.put(self._store, path, content, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def remove(self, path: str) -> None:
        """Remove a file."""
        obstore.delete(self._store, path)

    def puts_if_absent(self) -> bool:
        """Return whether the store refuses to write a file that is there: it is tried."""
        path = f"_informix_cdc_probe_{uuid4().hex}"
        try:
            return self.put_if_absent(path, b"1") and not self.put_if_absent(path, b"2")
        finally:
            self.remove(path)
