"""Who may read a shared capture over the network: the certificate of its server, and those of readers.

Rule: the folder belongs to this user alone, like the spool. Of a reader, its certificate and the digest
of its token are stored; the file of a reader is printed once, when it is added, and has everything that
the reader needs.

    <folder>/access/server.pem      certificate and key of the server
    <folder>/access/readers.json    the certificate of each reader, and the digest of its token
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from informix_capture_client.errors import AccessRefused
from informix_cdc.executors import AdmittedReader, Credentials, ReaderAccess, digest_of
from informix_checkpoints.reader_names import require_reader_name
from informix_checkpoints.spool import disk_errors, locked_folder, read_plain, replace_file

_FOLDER, _SERVER, _READERS = "access", "server.pem", "readers.json"
_KEY = b"-----BEGIN PRIVATE KEY-----"


@dataclass(frozen=True, slots=True)
class CaptureAccess:
    """The readers that the capture in a folder lets in."""

    capture: Path

    def add(self, reader: str) -> ReaderAccess:
        """Return what a reader needs to be let in; an earlier file of it is no longer valid.

        Raises:
            BadOption: it is not a name.
            AccessRefused: the folder cannot be written.
        """
        name = require_reader_name(reader)
        with self._locked():
            return self._added([name])[0]

    def renew(self) -> list[ReaderAccess]:
        """Replace the server's certificate and key, and return new files of all readers.

        No earlier file is valid any more.
        """
        with self._locked():
            names = [*self._readers()]
            self._write(_SERVER, self._new_server())
            return self._added(names)

    def remove(self, reader: str) -> bool:
        """Let a reader in no longer; return whether it was."""
        with self._locked():
            known = self._readers()
            is_there = known.pop(reader, None) is not None
            if is_there:
                self._store(known)
        return is_there

    def admitted(self) -> Mapping[str, AdmittedReader]:
        """Return who is let in, by name.

        Raises:
            AccessRefused: the file is damaged.
        """
        return self._readers()

    def of_server(self) -> tuple[bytes, bytes]:
        """Return the certificate of the server, and its key.

        Raises:
            AccessRefused: the file is damaged, or the folder cannot be written.
        """
        with self._locked():
            return self._server()

    def version(self) -> object:
        """Return a value that differs when anything has changed."""
        return [_version(self.capture / _FOLDER / name) for name in (_SERVER, _READERS)]

    def _added(self, names: list[str]) -> list[ReaderAccess]:
        from informix_cdc.executors import certificate_of_reader

        known, added, (server, _) = dict(self._readers()), [], self._server()
        for name in names:
            token, (certificate, key) = secrets.token_hex(32), certificate_of_reader(name)
            known[name] = AdmittedReader(certificate, digest_of(token))
            added.append(ReaderAccess(name, token, Credentials(server, certificate, key)))
        self._store(known)
        return added

    def _server(self) -> tuple[bytes, bytes]:
        path = self.capture / _FOLDER / _SERVER
        try:
            certificate, begin, key = read_plain(path).partition(_KEY)
        except FileNotFoundError:
            self._write(_SERVER, self._new_server())
            return self._server()
        if not (certificate and begin):
            raise AccessRefused(
                f"{path} is damaged.",
                f"Make new files of all readers: informix-cdc readers {self.capture} --renew DIRECTORY",
            )
        return certificate, begin + key

    def _new_server(self) -> bytes:
        from informix_cdc.executors import certificate_of_server

        return b"".join(certificate_of_server())

    def _readers(self) -> dict[str, AdmittedReader]:
        path = self.capture / _FOLDER / _READERS
        try:
            known = json.loads(read_plain(path))
            return {
                str(name): AdmittedReader(each["certificate"].encode(), str(each["token_digest"]))
                for name, each in known.items()
            }
        except FileNotFoundError:
            return {}
        except (ValueError, AttributeError, TypeError, KeyError) as reason:
            raise AccessRefused(
                f"{path} is damaged: {reason!r}.",
                "Remove it, and write the files of all readers again.",
            ) from None

    def _store(self, known: Mapping[str, AdmittedReader]) -> None:
        content = {
            name: {"certificate": each.certificate.decode(), "token_digest": each.token_digest}
            for name, each in known.items()
        }
        self._write(_READERS, json.dumps(content).encode())

    def _write(self, name: str, content: bytes) -> None:
        replace_file(self.capture / _FOLDER / name, content, durable=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one command at a time change who is let in."""
        with disk_errors(self.capture), locked_folder(self.capture / _FOLDER):
            yield


def _version(path: Path) -> object:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns
