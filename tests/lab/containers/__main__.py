"""Build our images, run them against the emulator, and print what was run.

    python -m lab.containers

Without an engine it starts one, as root on Debian: it says what it installs. A step that fails is a
line of the table, with the end of its output below, and the exit code is 1. No live Informix is
involved.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lab.containers import on_kubernetes
from lab.containers.composed import Compose, config, services
from lab.containers.engine import FOLDER, Engine, Failed, NotHere, engine
from lab.containers.images import BASE, CLIENT, SERVER, build_client, build_server, make_base
from lab.containers.live import live_tests
from lab.containers.runs import RUNS, Place, emulated_shop, prepared
from lab.containers.schemas import schemas

CONSOLE = Console(stderr=True)
_VOLUMES = tuple(
    f"informix-cdc-lab-{name}" for name in ("state", "spool", "reader", "lake", "kubernetes")
)


@dataclass
class Report:
    """Lines of the table, and what failed."""

    lines: list[tuple[str, str, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def add(self, name: str, step: Callable[[], str]) -> bool:
        """Run a step; return whether it did what it must."""
        CONSOLE.print(f"{name} ...")
        begin = time.monotonic()
        try:
            result, is_right = step(), True
        except (Failed, NotHere) as reason:
            result, is_right = str(reason).splitlines()[0], False
            word = "not here" if isinstance(reason, NotHere) else "FAILED"
            self.failures.append(f"{name}: {reason}")
            result = f"{word}: {result}"
        self.lines.append((name, f"{time.monotonic() - begin:.0f} s", result))
        return is_right

    def show(self) -> None:
        table = Table("what", "time", "result", title="containers against the emulator")
        for line in self.lines:
            table.add_row(*map(escape, line))
        Console().print(table)
        for each in self.failures:
            CONSOLE.print(escape(each))


def main() -> int:
    """Return 0 if every step did what it must."""
    report = Report()
    try:
        with engine(CONSOLE.print) as found:
            report.lines.append(("Docker engine", "", found.about))
            with _cleaned(found), tempfile.TemporaryDirectory(prefix="informix-cdc-") as folder:
                _run(found, Path(folder), report)
    except NotHere as reason:
        CONSOLE.print(escape(f"make containers: {reason}"))
        return 2
    report.show()
    return 1 if report.failures else 0


def _run(found: Engine, folder: Path, report: Report) -> None:
    Path(folder).chmod(0o755)  # containers run as another user
    prepared(folder)
    report.add("Kubernetes' schemas", lambda: schemas(folder))
    is_built = report.add(f"base image {BASE}", lambda: make_base(found, CONSOLE.print))
    is_built = is_built and report.add(f"image {CLIENT}", lambda: build_client(found, CONSOLE.print))
    if not is_built:
        return
    with emulated_shop(folder) as port:
        place = Place(found, port, folder)
        for name, run in RUNS.items():
            report.add(name, lambda run=run: run(place))
        report.add("mirror.yaml, without a cluster", lambda: on_kubernetes.mirror(found, port, folder))
    if report.add(f"image {SERVER}", lambda: build_server(found)):
        report.add("live tests by testcontainers", lambda: live_tests(found))
        _compose(found, folder, report)


def _compose(found: Engine, folder: Path, report: Report) -> None:
    report.add("compose.yaml, read", lambda: config(Compose(found, folder)))
    report.add("compose.yaml, run", lambda: services(Compose(found, folder)))


@contextlib.contextmanager
def _cleaned(found: Engine) -> Iterator[None]:
    """Remove volumes and images of this run, or with an engine of its own all that it stored."""
    try:
        yield
    finally:
        if not found.variables:
            for each in (("volume", "rm", "--force", *_VOLUMES), ("image", "rm", "--force", SERVER)):
                with contextlib.suppress(Failed):
                    found.docker(*each)


if __name__ == "__main__":
    code = main()
    shutil.rmtree(FOLDER, ignore_errors=True)
    sys.exit(code)
