"""Set up the runner: the process on Spark's driver that hosts a reader, one per query.

Rule: only there. Signals, garbage collector and imports belong to the owner of a process; changes of
both are undone.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

import pyarrow as pa

_RUNNER_MODULE = "pyspark.sql.streaming.python_streaming_source_runner"  # as started by Spark 4


def is_runner() -> bool:
    """Return whether this process is Spark's runner of a Python stream reader."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return getattr(main, "name", None) == _RUNNER_MODULE


def spare_pandas() -> None:
    """Keep PyArrow from importing pandas into the runner, which does not need it.

    At the first conversion from Python, PyArrow checks once per process whether pandas is available,
    and imports it: 0.4 s and 45 MB per query. Here it checks while pandas cannot be found. A later
    import works: a conversion to pandas checks again. Does nothing outside the runner, or if pandas is
    already imported.
    """
    if not is_runner() or "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _WithoutPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_WithoutPandas)


class _WithoutPandas:
    """A module finder, before all others, that hides pandas."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def settle_in_runner() -> Callable[[], None]:
    """Turn SIGTERM into an orderly exit; return a function that undoes it. Only acts in the runner.

    Spark usually kills the runner before it calls `stop`: it sends the signal twice, and the second one
    must not interrupt the closing of the session. Objects loaded by now exist as long as the process,
    so the garbage collector need not search them (measured: a quarter more rows per second).
    """
    if not is_runner():
        return lambda: None
    gc.freeze()
    if not _is_main_thread():
        return gc.unfreeze
    previous = signal.signal(signal.SIGTERM, _leave)

    def restore() -> None:
        gc.unfreeze()
        # after a first SIGTERM, the second must still be ignored
        if _is_main_thread() and signal.getsignal(signal.SIGTERM) is _leave:
            signal.signal(signal.SIGTERM, previous)

    return restore


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _leave(_signal: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(0)
