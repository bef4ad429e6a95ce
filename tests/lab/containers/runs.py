"""What runs in containers of the client's image, and what its output must show.

Rule: commands are those of docker/compose.yaml, with another address; containers get what the manifests
for Kubernetes give them: user 1000, no capability, a root that is read-only.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from docker_files.docker_folder import DOCKER, SERVICES
from harness.capture.scraping import free_port, scraped
from informix_emulator.shop import PASSWORD
from lab.containers.engine import Engine, Failed
from lab.containers.images import CLIENT

_SECONDS = 180
_LOCKED = ("--cap-drop=ALL", "--security-opt=no-new-privileges", "--read-only", "--tmpfs=/tmp")
_SECRET = "/run/secrets/informix_password"
_SPOOL = "/var/spool/informix-cdc/stores"
COUNT_ROWS = """import sys, deltalake
print(*(deltalake.DeltaTable(f"{sys.argv[1]}/{name}").count() for name in sys.argv[2:]))
"""


@dataclass(frozen=True)
class Place:
    """Where containers find the emulator, and what they mount.

    Attributes:
        engine: runs them.
        port: of the emulator, on the host's network, which they share.
        folder: of this run, for files that are mounted.
    """

    engine: Engine
    port: int
    folder: Path

    @property
    def server(self) -> list[str]:
        return ["--host=127.0.0.1", f"--port={self.port}"]

    def words(self, *words: str, **mounts: str) -> list[str]:
        """Return `docker run` for a command, with volumes by their names."""
        given = ["run", "--rm", "--init", "--network=host", *_LOCKED]
        given += [f"--volume={self.folder}/password:{_SECRET}:ro"]
        given += [f"--volume={source}:{target}" for source, target in mounts.items()]
        return [*given, CLIENT, *words]

    def run(self, *words: str, **mounts: str) -> str:
        return self.engine.docker(*self.words(*words, **mounts), seconds=_SECONDS)


@contextlib.contextmanager
def emulated_shop(folder: Path) -> Iterator[int]:
    """Run the emulator with its workload on this machine; yield its port."""
    port = free_port()
    words = [sys.executable, "-m", "informix_cdc.commands.cli", "emulator"]
    words += ["--host=0.0.0.0", f"--port={port}", "--demo-workload=20"]  # pods have another address
    with (folder / "emulator.log").open("w") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(30)


def service(name: str) -> list[str]:
    """Return the whole command of a service of compose."""
    given = SERVICES[name]
    return [*given.get("entrypoint", []), *given["command"]]


def doctor(place: Place) -> str:
    last = place.run(*service("doctor"), *place.server).strip().splitlines()[-1]
    return last


def tail(place: Place) -> str:
    text = place.run(*service("tail"), *place.server, "--format=json", "--limit=20")
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    counted = Counter(row["_table"] for row in rows)
    require(
        len(rows) == 20 and set(counted) <= {"stores:informix.orders", "stores:informix.items"}, text
    )
    return f"20 rows: {_listed(counted)}"


def stream(place: Place) -> str:
    """Stop a query with `docker stop`, and start it again on the same checkpoint."""
    words = [
        *service("client"),
        "host=127.0.0.1",
        f"port={place.port}",
        f"metricsAddress={free_port()}",
    ]
    volume = {"informix-cdc-lab-state": "/var/lib/informix-cdc"}
    first = _batches(place, place.words(*words, **volume))
    second = _batches(place, place.words(*words, **volume))
    # A batch that was shown and not committed yet is run again.
    is_next = first[-1] <= second[0] <= first[-1] + 1
    require(first[0] == 0 and is_next, f"batches {first}, then {second}")
    return f"batches {first[0]} to {first[-1]}, after a restart {second[0]} to {second[-1]}"


def _batches(place: Place, words: list[str], *, shown: int = 3) -> list[int]:
    """Run a query until it has shown some batches with rows, and stop it; return all numbers shown."""
    count = 0
    text = list[str]()
    with _running(place.engine, words, text.append) as process:
        assert process.stdout is not None
        for line in process.stdout:
            text.append(line)
            count += line.startswith("Batch: ")
            if count > shown and "informix." in line:
                break
    require(count > shown, "".join(text[-30:]))
    return [int(number) for number in re.findall(r"^Batch: (\d+)", "".join(text), re.MULTILINE)]


@contextlib.contextmanager
def _running(
    engine: Engine, words: list[str], on_rest: Callable[[str], object] = lambda _: None
) -> Iterator[subprocess.Popen[str]]:
    """Run a container; stop it as compose and Kubernetes do, and require exit code 0.

    `on_rest` gets what it has printed from the end of the block on.
    """
    name = f"informix-cdc-lab-{free_port()}"
    process = engine.popen("run", f"--name={name}", *words[1:])
    try:
        yield process
        engine.docker("stop", "--time=30", name)
        rest, _ = process.communicate(timeout=60)
        on_rest(rest)
        require(
            process.returncode == 0, f"exit code {process.returncode} after docker stop\n{rest[-2000:]}"
        )
    finally:
        process.kill()
        with contextlib.suppress(Failed):
            engine.docker("rm", "--force", name)


def capture(place: Place) -> str:
    """Capture as compose's service does, read it from another container, and stop both."""
    port = free_port()
    text = (DOCKER / "client/stores.toml").read_text()
    text = text.replace('"informix"\n', f'"127.0.0.1"\nport = {place.port}\n', 1).replace(
        "9187", str(port)
    )
    (place.folder / "stores.toml").write_text(text)
    settings = {f"{place.folder}/stores.toml": "/etc/informix-cdc/stores.toml:ro"}
    spool = {"informix-cdc-lab-spool": "/var/spool/informix-cdc"}
    reader = service("reader")
    with _running(place.engine, place.words(*service("capture"), **settings, **spool)) as process:
        assert process.stdout is not None
        require(any("Capturing stream" in line for line in process.stdout), "the capture did not start")
        state = {"informix-cdc-lab-reader": "/var/lib/informix-cdc"}
        numbers = _batches(place, place.words(*reader, **spool, **state))
        known = place.run("informix-cdc", "readers", _SPOOL, **spool)
        figures = scraped(port)
    require("console" in known, known)
    require("informix_cdc_reader_waiting_bytes" in figures, str(figures))
    return f"batches {numbers[0]} to {numbers[-1]} by reader console; metrics served; exit code 0"


def mirror(place: Place) -> str:
    """Mirror the shop into Delta tables in a volume, and count their rows."""
    text = f"""into = "/var/lib/informix-cdc/lake"
checkpoint = "/var/lib/informix-cdc/checkpoint"

[source]
transport = "sqli"
host = "127.0.0.1"
port = {place.port}
server = "informix"
database = "stores"
table = "informix.*"
passwordFile = "{_SECRET}"
"""
    (place.folder / "shop.toml").write_text(text)
    settings = {f"{place.folder}/shop.toml": "/etc/informix-cdc/shop.toml:ro"}
    volume = {"informix-cdc-lab-lake": "/var/lib/informix-cdc"}
    place.run("informix-cdc", "mirror", "/etc/informix-cdc/shop.toml", "--once", **settings, **volume)
    names = ("customers", "orders", "items")
    counts = place.run(
        "python", "-c", COUNT_ROWS, "/var/lib/informix-cdc/lake", *names, **volume
    ).split()
    require(all(int(count) > 0 for count in counts), f"{names}: {counts}")
    return ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))


def require(is_right: bool, shown: str) -> None:
    """Fail with what was seen instead."""
    if not is_right:
        raise Failed(f"not what was expected:\n{shown}")


def _listed(counted: Counter[str]) -> str:
    return ", ".join(f"{count} of {name}" for name, count in sorted(counted.items()))


def prepared(folder: Path) -> None:
    """Write the password for user 1000 of the containers alone."""
    (folder / "secret").mkdir()
    for file in (folder / "password", folder / "secret/password"):
        file.write_text(PASSWORD)
        file.chmod(0o400)
        with contextlib.suppress(PermissionError):  # not as root, and then it is this user's
            os.chown(file, 1000, 1000)


RUNS: dict[str, Callable[[Place], str]] = {
    "informix-cdc doctor": doctor,
    "informix-cdc tail": tail,
    "stream.py, stopped and started again": stream,
    "informix-cdc capture, and a query that reads it": capture,
    "informix-cdc mirror": mirror,
}
