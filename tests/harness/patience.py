"""How long tests wait: every deadline of a test is scaled by one factor from the environment.

    INFORMIX_CDC_TEST_PATIENCE=3 make test        on a machine that is three times as slow

Rule: a deadline only ends a test that would hang. Nothing is concluded from its length, so it may be
generous; what has to be shown to be quick is measured against the same factor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

VARIABLE = "INFORMIX_CDC_TEST_PATIENCE"
PATIENCE = float(os.environ.get(VARIABLE, "1"))


def patiently(seconds: float) -> float:
    """Return how long to wait on this machine for what an idle one does in so many seconds."""
    return seconds * PATIENCE


def wait_until(
    is_true: Callable[[], object],
    seconds: float = 60,
    complaint: Callable[[], str] = lambda: "it did not come true",
    pause_seconds: float = 0.02,
) -> None:
    """Poll until something is true, or fail with the complaint."""
    deadline = time.monotonic() + patiently(seconds)
    while not is_true():
        assert time.monotonic() < deadline, complaint()
        time.sleep(pause_seconds)
