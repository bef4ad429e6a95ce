"""Shorten errors that leave the methods called by Spark to one line, without a traceback.

Rule: bugs keep their traceback. Spark's worker prints the traceback of an exception before its message
(`pyspark.util.handle_worker_exception`): a wrong password took 26 lines, of which a notebook shows the
first. The traceback is logged at level debug.
"""

from __future__ import annotations

import functools
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ParamSpec, TypeVar

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.log_events import ERROR_RAISED

logger = logging.getLogger("informix_cdc.connector.entry_points")  # a logger name, not a module

Given = ParamSpec("Given")
_Answer = TypeVar("_Answer")


def one_line(method: Callable[Given, _Answer]) -> Callable[Given, _Answer]:
    """Remove the traceback from errors of this package that leave a method."""

    @functools.wraps(method)
    def entry(*args: Given.args, **kwargs: Given.kwargs) -> _Answer:
        try:
            return method(*args, **kwargs)
        except InformixCdcError as reason:
            error = _bare(method.__name__, reason)
            raise error from None

    return entry


def one_line_rows(method: Callable[Given, Iterator[_Answer]]) -> Callable[Given, Iterator[_Answer]]:
    """Do the same for a generator, whose errors are raised while Spark reads the rows."""

    @functools.wraps(method)
    def entry(*args: Given.args, **kwargs: Given.kwargs) -> Iterator[_Answer]:
        try:
            yield from method(*args, **kwargs)
        except InformixCdcError as reason:
            error = _bare(method.__name__, reason)
            raise error from None

    return entry


def _bare(method: str, error: InformixCdcError) -> InformixCdcError:
    frames = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False)
    # only names and line numbers: neither source text nor values
    where = " > ".join(f"{Path(each.filename).name}:{each.lineno}:{each.name}" for each in frames)
    ERROR_RAISED.log(logger, method=method, code=error.code, frames=where)
    return error.with_traceback(None)
