"""The test driver under the sanitisers of addresses and undefined behaviour: nothing harms it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.runs.patience import patiently
from odbc_driver.build import OTHER_DRIVER, build_sanitised

HERE = Path(__file__).parent
PUT_TO_IT = (
    "test_hostile_answers.py",
    "test_values_on_the_wire.py",
    "test_transport_contract.py",
    "test_bad_habits_of_drivers.py",
    "test_blocks_over_the_wire.py",
    "../object_readers/test_readers.py",
)


@pytest.mark.slow
@pytest.mark.fault(
    fault="hostile answers to the test driver, sanitised (addresses, undefined behaviour)",
    outcome="an error of ODBC; no byte is read or written beyond its room",
)
def test_no_answer_makes_the_driver_touch_what_is_not_its_own() -> None:
    library, preloaded = build_sanitised()
    # Python keeps memory to its end: that is no leak of the driver's
    sanitisers = {"LD_PRELOAD": preloaded, "ASAN_OPTIONS": "detect_leaks=0"}
    inner = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-k",
        "narrow or (test_readers and odbc)",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *inner, *(str(HERE / name) for name in PUT_TO_IT)],
        cwd=HERE.parents[2],
        env={**os.environ, **sanitisers, OTHER_DRIVER: str(library)},
        capture_output=True,
        text=True,
        check=False,
        timeout=patiently(120),
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert " passed" in done.stdout
