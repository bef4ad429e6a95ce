"""How long tests wait: every deadline of a test is scaled by one factor from the environment.

    INFORMIX_CDC_TEST_PATIENCE=3 make test        on a machine that is three times as slow

Rule: a deadline only ends, or fails, what would hang: it is ten times what an idle machine needs.
Nothing else is concluded from its length. What has to be quick is measured in seconds of the processor.
A sleep, or a patience of the product's that a test shortens, is a number times PATIENCE.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

VARIABLE = "INFORMIX_CDC_TEST_PATIENCE"
PATIENCE = float(os.environ.get(VARIABLE, "1"))
_GENEROUS = 10  # a machine on which others are busy too is no reason to fail


def patiently(seconds: float) -> float:
    """Return how long to wait at most for what an idle machine does in so many seconds."""
    return seconds * _GENEROUS * PATIENCE


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
