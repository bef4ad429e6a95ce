"""An object store in a process of its own: moto's S3, with a record of its requests.

    python object_stores.py    prints its port, and runs until its input ends

In this process it would never answer: delta-rs keeps Python's lock while it waits for a store.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

_BUCKET, _SETTINGS = "lake", "/-settings"
_OF_S3 = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host"
_CONDITIONS = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH")


@dataclass(frozen=True)
class ObjectStore:
    """A store that runs."""

    port: int

    @property
    def options(self) -> dict[str, str]:
        """Storage options of delta-rs."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }

    def url(self, name: str) -> str:
        """Return the URL of a folder."""
        return f"s3://{_BUCKET}/{name}"

    def set(self, **settings: float) -> None:
        """Set `delay_seconds` of each answer; or whether it `ignores_conditions` of writes."""
        self._asked("PUT", _SETTINGS, json.dumps(settings))

    def requests(self) -> list[tuple[str, str]]:
        """Return method and key of each request since the last call, in order."""
        return [(method, key) for method, key in json.loads(self._asked("GET", _SETTINGS))]

    def counts(self) -> Counter[str]:
        """Return the number of requests since the last call, by method."""
        return Counter(method for method, _ in self.requests())

    def _asked(self, method: str, path: str, body: str = "") -> bytes:
        connection = HTTPConnection("127.0.0.1", self.port)
        connection.request(method, path, body, {"Authorization": f"{_OF_S3}, Signature=x"})
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        connection.close()
        return content


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Start an empty store with a bucket."""
    program = [sys.executable, "-W", "ignore", str(Path(__file__))]
    pipe = subprocess.PIPE
    with subprocess.Popen(program, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        store = ObjectStore(int(process.stdout.readline()))
        store._asked("PUT", f"/{_BUCKET}")
        store.requests()
        yield store
        process.stdin.close()


class _Recorded:
    """The application of moto, with a record of requests."""

    def __init__(self) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app

        self._moto = DomainDispatcherApplication(create_backend_app)
        self._requests: list[tuple[str, str]] = []
        self._settings: dict[str, float] = {}

    def __call__(self, environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        method, path = environment["REQUEST_METHOD"], environment["PATH_INFO"]
        if path == _SETTINGS:
            if method == "PUT":
                length = int(environment["CONTENT_LENGTH"])
                self._settings |= json.loads(environment["wsgi.input"].read(length))
            found, self._requests = self._requests, []
            start("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(found).encode()]
        listed = environment["QUERY_STRING"] if method == "GET" and path == f"/{_BUCKET}" else ""
        self._requests.append((method, path.removeprefix(f"/{_BUCKET}/") + listed))
        if self._settings.get("ignores_conditions"):
            for name in _CONDITIONS:
                environment.pop(name, None)
        time.sleep(self._settings.get("delay_seconds", 0))
        answer: Iterable[bytes] = self._moto(environment, start)
        return answer


def main() -> None:
    """Run a store until the input ends."""
    import threading

    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, _Recorded(), threaded=True)
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
