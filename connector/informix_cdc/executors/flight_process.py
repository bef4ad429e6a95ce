"""Start the process of the Flight server, and start it again if it ends.

Rule: strangers and readers take neither memory nor descriptors of a process that captures, because the
server has a process of its own. The port is opened here, so that a wrong address is known at once. The
server gets its settings through a pipe: they are in no argument, file or environment. It ends when the
pipe is closed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from informix_capture_client.errors import AccessRefused, InformixCdcError
from informix_capture_client.log_events import FLIGHT_SERVER_ENDED

logger = logging.getLogger(__name__)

_PROGRAM = "informix_cdc.reading.serving"
# The process before may take that long to end: Spark does not wait for that of a query.
PORT_WAIT_SECONDS = 5.0
_START_SECONDS = 30.0
_PAUSE_SECONDS = 1.0  # before it is started again


class FlightProcess:
    """Serves from its creation until `close`.

    Args:
        host, port: to listen on; 0 for any free port.
        told: the settings of the server, as `serving.py` reads them.
        refusal: raised if it cannot listen there.
        on_refused: called with the numbers of calls and connections that were refused so far.
    """

    def __init__(
        self,
        host: str,
        port: int,
        told: Mapping[str, object],
        refusal: InformixCdcError,
        on_refused: Callable[[int, int], None] = lambda _calls, _connections: None,
    ) -> None:
        try:
            self._listening = _listening(host, port)
        except OSError:
            raise refusal from None
        self.port: int = self._listening.getsockname()[1]
        self._told, self._on_refused = dict(told), on_refused
        self._changed = threading.Condition()
        self._sent = self._done = 0
        self._is_closing = False
        self._process = self._start()
        self._watching = threading.Thread(target=self._watch, name="informix-cdc flight", daemon=True)
        self._watching.start()

    def tell(self, **news: object) -> None:
        """Tell the server more, and return when it has heard it.

        Raises:
            AccessRefused: it does not answer.
        """
        with self._changed:
            self._told |= news
            self._send(news)
            if not self._changed.wait_for(lambda: self._done >= self._sent, _START_SECONDS):
                raise AccessRefused(
                    f"the Flight server's process did not start within {_START_SECONDS:.0f} s.",
                    "Look at the log of this process, and start it again.",
                )

    def close(self, timeout_seconds: float) -> None:
        """Stop serving; calls that wait are answered, and rows on their way sent for some time."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._listening.close()
        with contextlib.suppress(OSError):
            self._stdin.close()
        self._watching.join(timeout_seconds)
        self._process.kill()
        self._watching.join()

    @property
    def _stdin(self) -> Any:  # noqa: ANN401 - a pipe of text
        return self._process.stdin

    def _start(self) -> subprocess.Popen[str]:
        environment = {
            name: value for name, value in os.environ.items() if "PASSWORD" not in name.upper()
        }
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _PROGRAM],  # -P: nothing of the working directory
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            pass_fds=[self._listening.fileno()],
        )
        self._sent = self._done = 0
        self._send({"listening": self._listening.fileno(), **self._told})
        return self._process

    def _send(self, content: Mapping[str, object]) -> None:
        self._sent += 1
        # If it has ended, the next one gets all of it; its pipe may be closed already.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._stdin.write(json.dumps(content) + "\n")
            self._stdin.flush()

    def _watch(self) -> None:
        """Read what the server says; start it again if it ends."""
        while True:
            process = self._process
            with contextlib.suppress(OSError), process:  # closing its pipe may fail
                assert process.stdout is not None
                for line in process.stdout:
                    with contextlib.suppress(ValueError):  # a library's line
                        self._heard(json.loads(line))
            with self._changed:
                if self._is_closing:
                    return
                FLIGHT_SERVER_ENDED.log(logger, status=process.returncode, port=self.port)
                if not self._is_started_again():
                    return

    def _is_started_again(self) -> bool:
        while not self._changed.wait_for(lambda: self._is_closing, _PAUSE_SECONDS):
            try:
                self._start()
                return True
            except OSError as reason:  # there may be no memory for a process just now
                FLIGHT_SERVER_ENDED.log(logger, status=reason, port=self.port)
        return False

    def _heard(self, said: object) -> None:
        if not isinstance(said, dict):
            return
        if "calls" in said:
            self._on_refused(said["calls"], said["connections"])
            return
        with self._changed:
            self._done += 1
            self._changed.notify_all()


def _listening(host: str, port: int) -> socket.socket:
    family, *_, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    patient = Retrying(
        retry=retry_if_exception_type(OSError),
        stop=stop_after_delay(PORT_WAIT_SECONDS if port else 0.0),
        wait=wait_fixed(0.2),
        reraise=True,
    )
    return patient(socket.create_server, address[:2], family=family)
