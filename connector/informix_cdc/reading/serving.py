"""The program of the Flight server's process: it serves until its standard input ends.

    first line    {"listening": descriptor, "log_level", ...} and for a capture {"capture": folder,
                  "readers_may_resync"}, for a query {"own": certificate and key, "admitted": readers}
    other lines   {"folders": {stream: folder}}, for a query; each line is answered with one
    it says       {"calls", "connections"}, so many of which were refused

Rule: the files of the capture's folder decide who is let in, and are looked at for each connection: a
reader that was removed is refused in the handshake at once.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.log_events import READER_CALL_FAILED, STRANGERS_REFUSED
from informix_cdc.executors import AdmittedReader, FlightServer, Relay, no_rows_named
from informix_cdc.monitoring import log_to_standard_error
from informix_cdc.reading.access import CaptureAccess
from informix_cdc.reading.answers import ReaderAnswers

logger = logging.getLogger("informix_cdc.connector.shared_capture")  # a logger name, not a module

_MOST_FILES = 8192  # of connections, and of segments
_MOST_MEMORY_KIB = 1 << 20
_CLOSING_SECONDS = 10.0
_LOOK_SECONDS = 0.5
_REPORT_SECONDS = 60.0
_OUT_OF_MEMORY = 3
_STREAM = re.compile(r"[0-9a-f]{16}")


class Serving:
    """A Flight server behind a relay; it is another one whenever other readers are let in.

    Args:
        told: the first line.
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._folders: Mapping[str, str] = told.get("folders", {})
        self._access = self._answers = None
        self._is_closed = threading.Event()
        self._refused_calls = 0
        self._reported: tuple[int, int] = (0, 0)
        self._server: FlightServer | None = None
        self._admitted: Mapping[str, AdmittedReader] = {}
        self._changing = threading.Lock()
        self._known: object = None
        if capture := told.get("capture"):
            self._access = CaptureAccess(Path(capture))
            self._answers = ReaderAnswers(Path(capture), may_resync=told["readers_may_resync"])
        else:
            self._admitted = {
                name: AdmittedReader(certificate.encode(), digest)
                for name, (certificate, digest) in told["admitted"].items()
            }
            self._serve(tuple(text.encode() for text in told["own"]))
        self._relay = Relay(socket.socket(fileno=told["listening"]), self._port)
        threading.Thread(target=self._report, name="informix-cdc refused", daemon=True).start()

    def update(self, told: Mapping[str, Any]) -> None:
        """Serve the streams that a line names, and no others."""
        self._folders = told["folders"]

    def close(self) -> None:
        """Answer calls that wait, send rows on their way for some seconds, and end."""
        self._relay.stop()  # the port is free for the next process
        self._is_closed.set()
        if self._answers is not None:
            self._answers.close()
        if self._server is not None:  # streams to readers that have stopped reading are not waited for
            ending = threading.Thread(target=self._server.shutdown, daemon=True)
            ending.start()
            ending.join(_CLOSING_SECONDS)
        self._relay.close()

    def _port(self) -> int:
        """Return the port of the server, which knows the readers of this moment."""
        self._present()
        if self._server is None:
            raise OSError("the files of readers cannot be read")
        return int(self._server.port)

    def _present(self) -> Mapping[str, AdmittedReader]:
        """Return who is let in now; if that has changed, new connections are those of another server.

        The former one goes on for a while: connections of others may be in their handshake.
        """
        if self._access is None:
            return self._admitted
        with self._changing:
            try:
                if (known := self._access.version()) != self._known:
                    former, self._admitted = self._server, self._access.admitted()
                    self._serve(self._access.of_server())
                    self._known = known
                    if former is not None:
                        ending = threading.Timer(_CLOSING_SECONDS, former.shutdown)
                        ending.daemon = True
                        ending.start()
            except InformixCdcError as reason:
                READER_CALL_FAILED.log(logger, reason=reason, traceback=None)
            return self._admitted

    def _serve(self, own: Any) -> None:  # noqa: ANN401 - a pair
        # without a reader, nobody: no certificate at all would mean those that the system trusts
        known = self._admitted or {"": AdmittedReader(own[0], "")}
        answer = self._answers.answer if self._answers is not None else None
        self._server = FlightServer(own, known, self._present, self._folder_of, answer, self._count)

    def _folder_of(self, stream: str) -> Path:
        if self._access is not None and _STREAM.fullmatch(stream):
            return self._access.capture / stream
        if stream not in self._folders:
            raise no_rows_named()
        return Path(self._folders[stream])

    def _count(self) -> None:
        self._refused_calls += 1

    def _report(self) -> None:
        """Say how many were refused, and log it once a minute; end a process that is too large."""
        logged_at, logged = -_REPORT_SECONDS, (0, 0)
        while not self._is_closed.wait(_LOOK_SECONDS):
            if _memory_kib() > _MOST_MEMORY_KIB:  # of requests, which gRPC reads whatever their size
                os._exit(_OUT_OF_MEMORY)
            found = (self._refused_calls, self._relay.refused)
            if found == self._reported:
                continue
            self._reported = found
            say({"calls": found[0], "connections": found[1]})
            if time.monotonic() - logged_at >= _REPORT_SECONDS:
                STRANGERS_REFUSED.log(
                    logger,
                    calls=found[0] - logged[0],
                    connections=found[1] - logged[1],
                    address=self._relay.last_refused,
                )
                logged_at, logged = time.monotonic(), found


def _memory_kib() -> int:
    """Return the memory of this process alone, without files that are mapped; 0 outside of Linux."""
    try:
        [line] = re.findall(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except (OSError, ValueError):
        return 0
    return int(line)


def say(content: Mapping[str, int]) -> None:
    """Write a line to the process that has started this one."""
    with contextlib.suppress(OSError):  # it has ended
        sys.stdout.write(json.dumps(content) + "\n")
        sys.stdout.flush()


def main() -> None:
    """Serve until standard input ends, whatever signals arrive: the other process decides."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(_MOST_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.environ["GRPC_VERBOSITY"] = "NONE"  # it would print lines about every stranger
    told = json.loads(sys.stdin.readline())
    log_to_standard_error(told["log_level"])
    serving = Serving(told)
    say({})
    for line in sys.stdin:
        serving.update(json.loads(line))
        say({})
    serving.close()
    os._exit(0)  # not after threads of gRPC that send to readers which no longer read


if __name__ == "__main__":
    main()
