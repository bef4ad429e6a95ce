"""The programs of README and of the first ten minutes run as they stand, and resume after a kill."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from harness.runs.patience import wait_until
from harness.runs.tiers import rest_in_all
from manual.made_parts import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_PAGE = (ROOT / "docs" / "first-table.md").read_text(encoding="utf-8")
PORT = 9088
LAKE = "/tmp/lake"
# Whoever follows the page has activated the environment.
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def blocks(language: str, page: str = FIRST_PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_readme_begins_as_the_first_ten_minutes_do() -> None:
    assert blocks("bash", README) == blocks("bash")
    assert blocks("python", README) == blocks("python")[:1]


def test_readme_is_short() -> None:
    assert len(README.split()) <= 600


def test_no_line_of_code_in_readme_is_cut_on_a_screen() -> None:
    """The site shows 80 columns at 1,280 pixels."""
    code = re.findall(r"^```\w*\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert max(len(line) for block in code for line in block.splitlines()) <= 80


@contextlib.contextmanager
def running(command: list[str], folder: Path, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a session of its own, which is killed whole at the end."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    environment = {**kept, "PATH": PATH, "SPARK_LOCAL_IP": "127.0.0.1", **more}
    with (folder / "output").open("ab") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def password(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the emulator by the page's own words; return the password that they set."""
    (block,) = blocks("bash")
    setting, start = block.splitlines()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            pytest.skip(f"something else listens on port {PORT}")
    folder = tmp_path_factory.mktemp("emulator")
    output = folder / "output"
    with running(shlex.split(start.removesuffix("&")), folder) as process:
        wait_until(lambda: process.poll() is not None or b"listens on" in output.read_bytes())
        assert process.poll() is None, output.read_text()
        yield shlex.split(setting)[1].partition("=")[2]


def rows(folder: Path, table: str) -> pa.Table:
    return pa.table(DeltaTable(str(folder / "stores" / table)).scan().read_all())


def batches(folder: Path) -> set[object]:
    """Return the batches of a mirror that are in its tables whole."""
    table = "_informix_cdc_batches"
    is_there = any((folder / "stores" / table / "_delta_log").glob("*.json"))
    return set(rows(folder, table)["batch"].to_pylist()) if is_there else set()


def unique(found: pa.Table, *columns: str) -> bool:
    keys = list(zip(*(found[column].to_pylist() for column in columns), strict=True))
    return 0 < len(keys) == len(set(keys))


def mirror_is_right(folder: Path) -> None:
    for table, key in (
        ("customers", ["customer_num"]),
        ("orders", ["order_num"]),
        ("items", ["item_num", "order_num"]),
    ):
        assert unique(rows(folder, table), *key)


def files(folder: Path) -> set[object]:
    """Return the files that Spark's log of the sink has."""
    return {
        Path(json.loads(line)["path"].removeprefix("file://"))
        for log in (folder / "orders_changes" / "_spark_metadata").glob("[0-9]*")
        for line in log.read_text(encoding="utf-8").splitlines()[1:]
    }


def stream_is_right(folder: Path) -> None:
    found = pa.concat_tables([pq.read_table(path) for path in files(folder)])
    assert unique(found, "_commit_version", "_change_ordinal")
    assert {True, False} == set(found["_snapshot"].to_pylist())


PROGRAMS: dict[str, tuple[Callable[[Path], set[object]], Callable[[Path], None]]] = {
    "first_mirror": (batches, mirror_is_right),
    "first_stream": (files, stream_is_right),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_in_all(PROGRAMS))
@pytest.mark.only_in_all
def test_a_program_of_the_first_page_runs_as_it_stands_and_goes_on_after_a_kill(
    name: str, password: str, tmp_path: Path
) -> None:
    code = dict(zip(PROGRAMS, blocks("python"), strict=True))[name]
    program = tmp_path / f"{name}.py"
    program.write_text(code.replace(LAKE, str(tmp_path)), encoding="utf-8")
    delivered, is_right = PROGRAMS[name]
    for _ in range(2):
        wanted = len(delivered(tmp_path)) + 4
        with running(["python", str(program)], tmp_path, INFORMIX_CDC_PASSWORD=password) as process:
            wait_until(
                lambda wanted=wanted, process=process: (
                    process.poll() is not None or len(delivered(tmp_path)) >= wanted
                ),
                pause_seconds=0.2,
            )
            assert process.poll() is None, (tmp_path / "output").read_text()[-4_000:]
    is_right(tmp_path)
