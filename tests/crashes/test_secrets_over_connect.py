"""Over Spark Connect the text of plans is in the event log: what keeps a password out of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from crashes.test_secrets import traces_of
from harness.capture.driving import insert
from harness.runs.patience import patiently
from harness.servers.stores import ORDERS, listening_stores, source_options
from harness.spark.starting import python_path
from manual.made_parts import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = Path(__file__).parent / "connect_driver.py"
SECRET = "Can4ryPw_Zq7xWv"
SETTING = "spark.sql.redaction.string.regex"


def redaction_of_the_manual() -> dict[str, str]:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    (value,) = re.findall(rf"^{re.escape(SETTING)}  (.*)$", page, re.MULTILINE)
    return {SETTING: value}


def run(folder: Path, streams: Mapping[str, object], settings: Mapping[str, str]) -> dict[str, str]:
    plan = {"folder": str(folder), "streams": streams, "settings": settings}
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        input=json.dumps(plan),
        capture_output=True,
        text=True,
        timeout=patiently(200),
        env={**os.environ, "PYTHONPATH": python_path()},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    ends: dict[str, str] = json.loads(done.stdout)
    return ends


@pytest.mark.fault(
    fault="option password over Spark Connect, whose event log shows plans",
    outcome="refused; by passwordFile, no event log has it; redacted if it was given all the same",
)
def test_no_password_is_in_the_event_log_of_a_connect_server(tmp_path: Path) -> None:
    with listening_stores() as (server, listening):
        server.users["informix"] = SECRET
        server.set_full_row_logging(ORDERS, True)
        insert(server, 1, 2)
        by_option = source_options(listening.port, password=SECRET, startingPosition="earliest")
        (tmp_path / "secret").write_text(SECRET)
        by_file = {**by_option, "password": "", "passwordFile": str(tmp_path / "secret")}
        looked_at = {**by_option, "looks first": "yes"}
        ends = run(tmp_path / "plain", {"file": by_file, "option": looked_at}, {})
        ends |= run(tmp_path / "redacted", {"redacted": by_option}, redaction_of_the_manual())
    assert ends["file"] == "rows 2"
    for refused in "option", "redacted":
        assert "IFXCDC-0003: option 'password' was sent over Spark Connect" in ends[refused]
    for run_name in "plain", "redacted":
        (log,) = (tmp_path / run_name / "events").rglob("events_*")
        assert "SparkListenerConnectOperationStarted" in log.read_text()
        assert traces_of(SECRET, tmp_path / run_name) == []
