"""README's first section, run in a clean environment from the built files alone.

Rule: the commands and the program are README's own, as it stands on an index. Only the folder that its
program writes to is another. Nothing of the checkout is on a path.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from release.commands import StepFailed, bare_environment, run

PYTHONS = ("3.11", "3.12", "3.13")
PORT = 9088
_LAKE = "/tmp/lake"
_SECONDS = 600
_LEAST_BATCHES = 3
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_KEYS = {"customers": ["customer_num"], "orders": ["order_num"], "items": ["order_num", "item_num"]}
# In the environment: the version that is there and its place, and then the rows of the tables.
_WHERE = "import informix_cdc; print(informix_cdc.__version__, informix_cdc.__file__)"
_COUNT = """
import json, sys
import pyarrow as pa
from deltalake import DeltaTable
for table, key in json.loads(sys.argv[2]).items():
    rows = pa.table(DeltaTable(f"{sys.argv[1]}/stores/{table}").scan().read_all())
    keys = list(zip(*(rows[name].to_pylist() for name in key)))
    assert keys and len(keys) == len(set(keys)), f"{table} has {len(keys)} rows, {len(set(keys))} keys"
    print(table, len(keys))
"""
# Until README's server listens: not another one, which has the port.
# A network of its own, where the host allows one: nothing is fetched, and no other server is met.
_ALONE = ("unshare", "--net", "--map-root-user", "bash", "-c", 'ip link set lo up && exec bash -c "$0"')
_WAIT = 'until grep -qs "listens on" output; do kill -0 $! || exit 1; sleep 0.2; done'


def blocks(page: str, language: str) -> list[str]:
    """Return the code of a page's fenced blocks in a language; the empty one is that without a name."""
    return [code for name, code in _BLOCK.findall(page) if name == language]


def install_command(page: str) -> str:
    """Return the first `pip install` line of a page, without its comment."""
    lines = (line for block in blocks(page, "") for line in block.splitlines())
    return next(line.partition("#")[0].strip() for line in lines if line.startswith("pip install "))


def interpreters(wanted: tuple[str, ...] = PYTHONS) -> dict[str, Path]:
    """Return the Pythons of this machine by version: on PATH, or of pyenv."""
    found = {}
    for version in wanted:
        candidates = [shutil.which(f"python{version}")]
        candidates += map(str, sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
        for path in filter(None, candidates):
            shown = subprocess.run([path, "-c", "import venv"], capture_output=True, check=False)
            if shown.returncode == 0:
                found[version] = Path(path)
                break
    return found


def clean_environment(python: Path, folder: Path, file: Path, page: str) -> dict[str, str]:
    """Make an environment by README's command; return the variables to run programs in it.

    The file is installed first, so that this command finds the product there and nowhere else.
    """
    home = folder / "home"
    home.mkdir(parents=True)
    run(python, "-m", "venv", folder / "venv", environment=bare_environment(home))
    environment = bare_environment(home, SPARK_LOCAL_IP="127.0.0.1")
    environment["PATH"] = f"{folder / 'venv' / 'bin'}:{environment['PATH']}"
    for command in (f"pip install '{file}'", install_command(page)):
        run("bash", "-c", command, folder=home, environment=environment)
    return environment


def check_installed(folder: Path, environment: dict[str, str], version: str) -> None:
    """Check that this version is installed with all it needs and the jar, not a checkout."""
    python = folder / "venv" / "bin" / "python"
    shown = run(python, "-c", _WHERE, folder=folder, environment=environment).strip()
    if not shown.startswith(f"{version} {folder / 'venv'}/"):
        raise StepFailed(f"another product than {version} of {folder} is installed: {shown}")
    run(python, "-m", "pip", "check", folder=folder, environment=environment)
    run("bash", "-c", "informix-cdc jar && informix-cdc --help", folder=folder, environment=environment)


def run_demo(folder: Path, environment: dict[str, str]) -> None:
    """Run the demo, which fails where a value of a table is not that of the server."""
    run("bash", "-c", "informix-cdc demo --seconds 10", folder=folder, environment=environment)


def run_first_section(page: str, folder: Path, environment: dict[str, str]) -> str:
    """Run README's server and program until the tables have batches; return what they then hold."""
    if not (alone := can_be_alone()):
        wait_for_free_port(_SECONDS)
    lake = folder / "lake"
    (folder / "first.py").write_text(blocks(page, "python")[0].replace(_LAKE, str(lake)), "utf-8")
    session = f"{blocks(page, 'bash')[0]}\n{_WAIT}\npython first.py\n"
    command = [*(_ALONE if alone else ("bash", "-c")), session]
    with running(command, folder, environment) as process:
        end = time.monotonic() + _SECONDS
        while batches(lake) < _LEAST_BATCHES:
            if process.poll() is not None or time.monotonic() > end:
                output = (folder / "output").read_text(errors="replace")[-4000:]
                raise StepFailed(f"README's program brought {batches(lake)} batches:\n{output}")
            time.sleep(0.5)
    counted = run(
        "python", "-c", _COUNT, lake, json.dumps(_KEYS), folder=folder, environment=environment
    )
    return ", ".join(counted.split("\n")).strip(", ") + (", without a network" if alone else "")


def can_be_alone() -> bool:
    """Return whether a process may have a network of its own here."""
    try:
        return not subprocess.run([*_ALONE, "true"], capture_output=True, check=False).returncode
    except OSError:
        return False


def batches(lake: Path) -> int:
    """Return how many batches a mirror has committed."""
    return len(list((lake / "stores" / "_informix_cdc_batches" / "_delta_log").glob("*.json"))) - 1


def wait_for_free_port(seconds: float) -> None:
    """Wait until README's port is free: another server would be taken for README's.

    Raises:
        StepFailed: it is in use for longer.
    """
    end = time.monotonic() + seconds
    while is_in_use(PORT):
        if time.monotonic() > end:
            raise StepFailed(f"port {PORT}, on which README starts its server, is in use.")
        time.sleep(0.5)


def is_in_use(port: int) -> bool:
    """Return whether something listens on a port of this host."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


@contextlib.contextmanager
def running(
    command: list[str], folder: Path, environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command that is killed with all it started at the end."""
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
