"""Processes that die at a failpoint, forked from one that has imported the product once.

Rule: what runs in them is a function of a module, which such a process can import. Fork server of
multiprocessing: https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from unittest.mock import patch

from harness.runs.patience import patiently
from harness.runs.short_waits import shorten_waits
from informix_capture_client.failpoints import EXIT_CODE, VARIABLE

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["harness.capture.batches"])  # what takes a second to import


def die_at(failpoint: str, run: Callable[..., object], *arguments: object) -> None:
    """Run a function in a process of its own, which must die at a failpoint.

    Args:
        failpoint: as in `failpoints`; `name@3` is the third passing.
        run: a function that can be imported.
        arguments: its arguments; they are pickled.
    """
    process = _FORKS.Process(target=_armed, args=(failpoint, run, arguments))
    with patch.dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)):  # for the server's imports
        process.start()
    process.join(patiently(120))
    assert process.exitcode == EXIT_CODE, f"{failpoint}: the process ended with {process.exitcode}"


def _armed(failpoint: str, run: Callable[..., object], arguments: tuple[object, ...]) -> None:
    os.environ[VARIABLE] = failpoint
    shorten_waits()
    run(*arguments)


__all__ = ["die_at"]
