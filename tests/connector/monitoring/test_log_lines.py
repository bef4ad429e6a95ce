"""The log of a process that nobody has set up: whole lines on standard error."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

PROGRAM = """
import logging, sys
from informix_capture_client.log_events import CONNECTION_LOST, ERROR_TEXT_UNKNOWN
from informix_cdc.monitoring.log_lines import log_to_standard_error
exec(sys.argv[1])
for level in sys.argv[2:]:
    log_to_standard_error(level)
logger = logging.getLogger("informix_cdc.connector.x")
ERROR_TEXT_UNKNOWN.log(logger, name="CDC_E_X", reason="none")
CONNECTION_LOST.log(logger, stream="s1", failures=1, reason="gone away")
"""


def said(set_up: str, *levels: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, set_up, *levels], capture_output=True, text=True, check=True
    )
    return done.stderr.splitlines()


@pytest.mark.slow
def test_lines_begin_with_time_level_and_logger() -> None:
    (line,) = said("", "warning")
    head = r"ts=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=warning logger=informix_cdc\.connector\.x "
    assert re.fullmatch(head + 'event=connection_lost stream=s1 failures=1 reason="gone away"', line)


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_lower_level_says_more_and_asking_twice_says_nothing_twice() -> None:
    lines = said("", "info", "info")
    assert [re.findall(r"level=(\w+) .* event=(\w+)", line)[0] for line in lines] == [
        ("info", "error_text_unknown"),
        ("warning", "connection_lost"),
    ]


@pytest.mark.slow
@pytest.mark.only_in_all
def test_whoever_has_set_up_logging_is_left_alone() -> None:
    lines = said("logging.basicConfig(format='mine %(levelname)s')", "info")
    assert lines == ["mine WARNING"]
