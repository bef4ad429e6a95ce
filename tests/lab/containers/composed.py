"""docker/compose.yaml by Docker Compose: read with all profiles, and run with a server of ours."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from docker_files.docker_folder import DOCKER
from harness.capture.scraping import free_port
from informix_emulator.shop import PASSWORD
from lab.containers.engine import FOLDER, Engine, Failed, NotHere, output_of
from lab.containers.images import MIRROR, SERVER
from lab.containers.runs import require

# Of the Debian after the one that the engine may run on, which has Compose 1 only; a static program.
_PACKAGE = f"{MIRROR}/pool/main/d/docker-compose/docker-compose_2.26.1-4_amd64.deb"
_DIGEST = "47681197cb2b1ab88206b42a1a92fc75f50d9530a6322d03494a473eed0408ea"
_PROGRAM = "usr/libexec/docker/cli-plugins/docker-compose"
# Instead of IBM's image, on a free port. LICENSE: there is none to accept.
_OVERRIDE = """services:
  informix:
    image: {server}
    privileged: false
    ports: !override ["127.0.0.1:{port}:9088"]
"""
_VARIABLES = {"LICENSE": "emulator", "INFORMIX_CDC_PASSWORD": PASSWORD, "GBASE_PASSWORD": "none"}
_SECONDS = 300


class Compose:
    """Docker Compose, of this machine or of a Debian package, for one project."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._words = _program(engine)
        self._variables = {**engine.variables, **_VARIABLES}
        override = folder / "override.yaml"
        override.write_text(_OVERRIDE.format(server=SERVER, port=free_port()))
        self._files = ["--env-file=/dev/null", "--project-name=informix-cdc-lab"]
        self._files += [f"--file={DOCKER}/compose.yaml", f"--file={override}"]

    def run(self, *words: str) -> str:
        return output_of(
            *self._words, *self._files, *words, variables=self._variables, seconds=_SECONDS
        )

    def version(self) -> str:
        return output_of(*self._words, "version", "--short", variables=self._variables).strip()


def _program(engine: Engine) -> list[str]:
    with contextlib.suppress(Failed):
        output_of("docker", "compose", "version", variables=engine.variables)
        return ["docker", "compose"]
    if shutil.which("dpkg-deb") is None or os.uname().machine != "x86_64":
        raise NotHere("no Docker Compose 2 is here")
    folder = FOLDER / "compose"
    if not (folder / _PROGRAM).exists():
        folder.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(_PACKAGE, timeout=120) as answer:
            content = answer.read()
        if hashlib.sha256(content).hexdigest() != _DIGEST:
            raise NotHere(f"{_PACKAGE} is not the file with the SHA-256 that is expected")
        (folder / "compose.deb").write_bytes(content)
        output_of("dpkg-deb", "--extract", folder / "compose.deb", folder)
    return [str(folder / _PROGRAM)]


def config(compose: Compose) -> str:
    services = compose.run("--profile=*", "config", "--services").split()
    return f"Compose {compose.version()} reads {len(services)} services"


@contextlib.contextmanager
def _up(compose: Compose) -> Iterator[None]:
    try:
        compose.run("up", "--detach", "--wait", "informix")
        yield
    finally:
        compose.run("--profile=*", "down", "--volumes", "--timeout=30")


def services(compose: Compose) -> str:
    """Start the server, run doctor and tail, then the profile capture, and remove everything."""
    with _up(compose):
        compose.run("run", "--rm", "-T", "doctor")
        words = ("--host=informix", "--table=informix.orders,informix.items")
        rows = compose.run("run", "--rm", "-T", "tail", *words, "--format=json", "--limit=5")
        require(rows.count('"_table"') == 5, rows)
        compose.run("--profile=capture", "up", "--detach", "--wait", "--no-deps", "capture", "reader")
        shown = _until_shown(compose, "reader", "informix.orders")
        folder = "/var/spool/informix-cdc/stores"
        known = compose.run("exec", "-T", "capture", "informix-cdc", "readers", folder)
        require("console" in known, known)
    return f"informix (the emulator) healthy; doctor; tail: 5 rows; capture healthy; reader: {shown}"


def _until_shown(compose: Compose, service: str, word: str) -> str:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        logs = compose.run("logs", "--no-log-prefix", service)
        if word in logs:
            return f"{logs.count('Batch: ')} batches"
        time.sleep(1)
    raise Failed(f"{service} has not shown {word}:\n{logs[-2000:]}")
