"""What a reader sets up in the runner: the process that hosts it on Spark's driver, one per query.

Rule: nowhere else. Signals, the collector and what is imported belong to whoever owns the process; what
a reader changes of the first two is put back. The limit of open files is the process's too.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import resource
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

import pyarrow as pa

from informix_capture_client.log_events import FILE_LIMIT_RAISED

logger = logging.getLogger(__name__)
_RUNNER_MODULE = "pyspark.sql.streaming.python_streaming_source_runner"  # as Spark 4 starts it


def is_runner() -> bool:
    """Tell whether this process is Spark's runner of a Python stream reader."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return getattr(main, "name", None) == _RUNNER_MODULE


def spare_pandas() -> None:
    """Keep PyArrow from importing pandas into the runner, which has no use for it.

    PyArrow looks once in a process, at the first conversion from Python, whether pandas is there to
    be asked for its types, and so imports it: 0.4 s and 45 MB a query. Here it looks while pandas is
    not to be found. Who imports it later can: a conversion to pandas looks again. Does nothing outside
    the runner, nor where pandas is imported already.
    """
    if not is_runner() or "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _WithoutPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_WithoutPandas)


class _WithoutPandas:
    """A finder of modules, before all others, that finds no pandas."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def settle_in_runner() -> Callable[[], None]:
    """Turn SIGTERM into an orderly exit; return what undoes it, and does nothing outside the runner.

    Spark usually kills the runner before it calls `stop`: it sends the signal twice, and the second one
    must not interrupt the closing of the session. What the process has loaded by now lives as long as
    the process: the collector need not search it whenever rows come and go (measured: a quarter more
    rows a second).
    """
    if not is_runner():
        return lambda: None
    gc.freeze()
    _raise_file_limit()
    if not _is_main_thread():
        return gc.unfreeze
    previous = signal.signal(signal.SIGTERM, _leave)

    def restore() -> None:
        gc.unfreeze()
        # where the first SIGTERM has come, the second is still to be ignored
        if _is_main_thread() and signal.getsignal(signal.SIGTERM) is _leave:
            signal.signal(signal.SIGTERM, previous)

    return restore


def _raise_file_limit() -> None:
    """Let the process open as many files as it may ask for: strangers at the Flight port hold some.

    The usual soft limit of 1,024 is for programs that call select(), as systemd's NEWS for 240 has it.
    It stays when the stream ends: others may need the files that are open by then.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    with contextlib.suppress(OSError, ValueError):  # some systems take no number above one of theirs
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        FILE_LIMIT_RAISED.log(logger, before=soft, now=hard)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _leave(_signal: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(0)
