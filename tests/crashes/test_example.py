"""The example sink as a new user runs it; the other tests here import it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]
EXAMPLE = Path(__file__).parents[2] / "examples" / "exactly_once_sink.py"


def test_the_exactly_once_sink_keeps_each_batch_in_its_place() -> None:
    answer = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, text=True, timeout=180, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert re.findall(r"\|\s*(\d+)\|\s*(\d+)\|", answer.stdout) == [("1", "1"), ("2", "2")]
    assert len(EXAMPLE.read_text().splitlines()) < 50
