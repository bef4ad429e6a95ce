"""After crashes, with every log at its loudest: the password is nowhere, in no usual encoding.

`tests/end_to_end/test_mistakes.py` searches runs without crashes, and the errors of wrong options.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from connector.jvm.java_reader import has_javac, jar
from harness.capture.driving import (
    anchor_of,
    drained,
    insert,
    reader,
)
from harness.capture.scraping import free_port
from harness.oracles.long_workload import LongWorkload
from harness.runs.patience import patiently
from harness.servers.stores import PASSWORD, source_options
from harness.spark.sent_to_executors import sent_to_executors
from harness.spark.starting import python_path
from informix_capture_client.failpoints import VARIABLE
from informix_emulator import EmulatedServer, ListeningServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Served = tuple[EmulatedServer, ListeningServer]
PROGRAM = Path(__file__).parent / "chatty_driver.py"

# Python imports this at its start, also in Spark's runner and workers: our own log at its loudest.
LOUD = """
import logging
handler = logging.StreamHandler()
handler.setFormatter(logging.Formatter("informix-cdc log %(process)d %(levelname)s %(message)s"))
logging.getLogger("informix_cdc").addHandler(handler)
logging.getLogger("informix_cdc").setLevel(logging.DEBUG)
"""


def forms_of(secret: str) -> dict[str, bytes]:
    """Return what a secret looks like in text, in Java's and Windows' wide text, and in base64."""
    plain = secret.encode()
    forms = {"plain": plain, "UTF-16": secret.encode("utf-16-le")}
    for shift in range(3):  # base64 cuts into threes: the secret may begin at each place
        inner = base64.b64encode(b"\0" * shift + plain)[4 if shift else 0 :]
        forms[f"base64, shifted by {shift}"] = inner[: len(inner) // 4 * 4 - 4]
    return forms


def traces_of(secret: str, folder: Path) -> list[tuple[str, str]]:
    """Return the files that hold a secret, and in which form."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    forms = forms_of(secret)
    return [
        (str(path.relative_to(folder)), name)
        for path in files
        for name, form in forms.items()
        if form in path.read_bytes()
    ]


@pytest.mark.parametrize("before", [b"", b"a", b"ab", b"abc"])
def test_the_search_finds_what_it_looks_for(before: bytes, tmp_path: Path) -> None:
    content = before + PASSWORD.encode() + b"!"
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "wide").write_bytes(content.decode().encode("utf-16-le"))
    (tmp_path / "wide, high byte first").write_bytes(content.decode().encode("utf-16-be"))
    (tmp_path / "base64").write_bytes(base64.b64encode(content))
    found = {file for file, _ in traces_of(PASSWORD, tmp_path)}
    assert found == {"plain", "wide", "wide, high byte first", "base64"}


@pytest.mark.fault(
    fault="a run with crashes, all logs at DEBUG, password by option, passwordFile or passwordCommand,"
    " rows or JSON, read in Python or in the JVM",
    outcome="no password in logs, errors, plans, progress, metrics, event log, UI, checkpoint, spool,"
    " copies or pickles",
)
def test_a_run_with_crashes_shows_its_password_nowhere(served: Served, tmp_path: Path) -> None:
    folder, work = tmp_path / "run", LongWorkload(served[0], seed=1)
    folder.mkdir()
    port = str(free_port())
    by_option = source_options(served[1].port, spoolPath=str(folder / "spool"), metricsAddress=port)
    other = {key: value for key, value in by_option.items() if key != "password"}
    secret = tmp_path / "secret"
    secret.write_text(by_option["password"])
    streams = {
        "option": {"options": by_option, "failpoint": "capture.before_flush", "in_jvm": True},
        "file": {
            "options": {**other, "passwordFile": str(secret), "shape": "json"},
            "failpoint": "reader.read",
            "in_jvm": False,
        },
        "command": {
            "options": {
                **other,
                "passwordCommand": f"cat {shlex.quote(str(secret))}",
                "shape": "json",
                "segmentCopies": (folder / "copies").as_uri(),
            },
            "failpoint": "capture.before_flush",
            "in_jvm": True,
        },
    }
    with work.going_on():
        plan = {"folder": str(folder), "streams": streams, "jar": str(jar()) if has_javac() else ""}
        _run(plan, folder, tmp_path)
    _pickle_what_travels(served, folder)
    for name, stream in streams.items():
        (folder / f"{name}.pickle").write_bytes(sent_to_executors(stream["options"]))
    assert traces_of(PASSWORD, folder) == []
    _assert_that_there_was_something_to_search(folder)


def _run(plan: dict[str, object], folder: Path, aside: Path) -> None:
    (aside / "loud").mkdir()
    (aside / "loud" / "sitecustomize.py").write_text(LOUD)
    environment = {
        **os.environ,
        VARIABLE: str(aside / "failpoint"),
        "PYTHONPATH": python_path(aside / "loud"),
    }
    with (folder / "out.log").open("wb") as out, (folder / "err.log").open("wb") as err:
        done = subprocess.run(
            [sys.executable, PROGRAM], input=json.dumps(plan).encode(), stdout=out, stderr=err,
            env=environment, timeout=patiently(250), check=False,
        )  # fmt: skip
    assert done.returncode == 0, (folder / "err.log").read_text()[-3000:]


def _pickle_what_travels(served: Served, folder: Path) -> None:
    with reader(served[1].port, spoolPath=str(folder / "spool of the pickled")) as made:
        anchor = anchor_of(made)
        _, end = drained(made, anchor, insert(served[0], 1))
        (folder / "reader.pickle").write_bytes(pickle.dumps(made))
        (folder / "partitions.pickle").write_bytes(pickle.dumps(made.partitions(anchor, end)))


def _assert_that_there_was_something_to_search(folder: Path) -> None:
    log = (folder / "err.log").read_text()
    assert " DEBUG " in log
    assert "informix-cdc log" in log
    assert {"event=stream_begun", "event=batch_done"} <= set(re.findall(r"event=\w+", log))
    assert "Parsed Logical Plan" in (folder / "out.log").read_text()
    for name in "option", "file", "command":
        assert "Streaming Query" in (folder / name / "error.txt").read_text()
        assert len(list((folder / name / "pages").iterdir())) > 10
        assert "informix_cdc_rows_total{" in (folder / name / "metrics.txt").read_text()
        assert list((folder / name / "checkpoint" / "offsets").iterdir())
    if has_javac():
        assert "ColumnarToRow" in (folder / "out.log").read_text()  # rows came from the JVM's reader
    for pattern in "events/**/*", "spool/*/*.arrow", "copies/*/*.arrow", "*.pickle":
        assert list(folder.glob(pattern)), pattern
