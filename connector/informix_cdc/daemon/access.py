"""Who may read a shared capture over the network: an authority of its own, and a token per reader.

Rule: the folder belongs to this user alone, like the spool. Of tokens only digests are stored; the file
of a reader is printed once, when it is added, and has everything that the reader needs.

    <folder>/access/authority.pem    key and certificate that sign those of the server and of readers
    <folder>/access/tokens.json      the digest of each reader's token
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from informix_capture_client.errors import AccessRefused
from informix_cdc.executors import Authority, Credentials, ReaderAccess
from informix_checkpoints.reader_names import require_reader_name
from informix_checkpoints.spool import disk_errors, locked_folder, read_plain, replace_file

_FOLDER, _AUTHORITY, _TOKENS = "access", "authority.pem", "tokens.json"


@dataclass(frozen=True, slots=True)
class CaptureAccess:
    """The authority and the tokens of the capture in a folder."""

    capture: Path

    def add(self, reader: str) -> ReaderAccess:
        """Return what a reader needs to be admitted; an earlier token of it is no longer valid.

        Raises:
            BadOption: it is not a name.
            AccessRefused: the folder cannot be written.
        """
        token, name = secrets.token_hex(32), require_reader_name(reader)
        with self._locked():
            access = ReaderAccess(name, token, self._authority().of_client(name))
            self._write(_TOKENS, json.dumps({**self._tokens(), name: _digest(token)}).encode())
        return access

    def remove(self, reader: str) -> bool:
        """Make the token of a reader invalid; return whether it had one."""
        with self._locked():
            tokens = self._tokens()
            is_there = tokens.pop(reader, None) is not None
            if is_there:
                self._write(_TOKENS, json.dumps(tokens).encode())
        return is_there

    def reader_of(self, token: str) -> str | None:
        """Return the reader that a token belongs to."""
        digest = _digest(token)
        found = [name for name, known in self._tokens().items() if hmac.compare_digest(known, digest)]
        return found[0] if found else None

    def of_server(self) -> Credentials:
        """Return a new certificate for the server."""
        with self._locked():
            return self._authority().of_server()

    def _authority(self) -> Authority:
        path = self.capture / _FOLDER / _AUTHORITY
        try:
            return Authority.load(read_plain(path))
        except FileNotFoundError:
            authority = Authority.new()
            self._write(_AUTHORITY, authority.to_pem())
            return authority
        except ValueError as reason:
            raise AccessRefused(
                f"{path} is damaged: {reason}.",
                "Remove it, start the capture again, and write the files of all readers again.",
            ) from None

    def _tokens(self) -> dict[str, str]:
        path = self.capture / _FOLDER / _TOKENS
        try:
            known = json.loads(read_plain(path))
            return {str(name): str(digest) for name, digest in known.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, AttributeError) as reason:
            raise AccessRefused(
                f"{path} is damaged: {reason}.", "Remove it, and write the files of all readers again."
            ) from None

    def _write(self, name: str, content: bytes) -> None:
        replace_file(self.capture / _FOLDER / name, content, durable=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one command at a time change tokens, or make the authority."""
        with disk_errors(self.capture), locked_folder(self.capture / _FOLDER):
            yield


def _digest(token: str) -> str:
    # a token has 256 random bits: a slow digest would add nothing
    return hashlib.sha256(token.encode()).hexdigest()
