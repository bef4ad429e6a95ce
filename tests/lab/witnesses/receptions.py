"""Listeners that receive clients otherwise: with TLS, with PAM, on their way elsewhere, or slowly.

Rule: the server behind each is the usual one.
"""

from __future__ import annotations

import ssl
import subprocess
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from harness.servers.certificates import certificates_for
from informix_emulator import EmulatedServer
from informix_emulator.answers import (
    CheckStatement,
    Prepared,
    SqlSession,
    SqlValue,
    StatementOutcome,
    StatementType,
)
from informix_emulator.connection import Connection
from informix_emulator.listening import ServerSocket
from informix_emulator.sqli import Greeting
from lab.witnesses.java_programs import java_tool

STORE_PASSWORD = "of-a-toy"
WAITS = "select waiting from nowhere"


def received_with(server: EmulatedServer, greeting: Greeting) -> ServerSocket:
    """Return a listener that greets as it is told."""
    return ServerSocket(partial(Connection, server), greeting=lambda: greeting)


class _WaitingSession:
    """Statements of a session, and one more that goes on until it is interrupted."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> object:
        return getattr(self._session, name)

    def prepare(self, text: str) -> Prepared:
        if text != WAITS:
            return self._session.prepare(text)
        return Prepared(StatementType.OTHER, [], [], _wait)


def _wait(_values: Sequence[SqlValue], check: CheckStatement) -> StatementOutcome:
    while True:
        check()
        time.sleep(0.01)


class WaitingConnection(Connection):
    """A connection that knows a statement without an end."""

    def session(self) -> SqlSession:
        return _WaitingSession(super().session())  # type: ignore[return-value]


def waiting_listener(server: EmulatedServer) -> ServerSocket:
    """Return a listener whose clients can ask for `WAITS`."""
    return ServerSocket(
        partial(WaitingConnection, server), greeting=lambda: Greeting(server.name, server.version)
    )


def encryption(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Make what a server shows, and the trust store with which Java believes it."""
    shown, _ = certificates_for(folder)
    context = shown.server_context()
    store = folder / "trust.p12"
    keytool = Path(java_tool("java")).resolve().with_name("keytool")
    command = [str(keytool), "-importcert", "-noprompt", "-alias", "emulator"]
    command += ["-file", str(shown.authority), "-keystore", str(store)]
    command += ["-storetype", "PKCS12", "-storepass", STORE_PASSWORD]
    subprocess.run(command, check=True, capture_output=True)
    return context, store
