"""Errors of delta-rs and Spark while tables of the lake are read and written.

Rule: an error that concerns one table, and lasts until somebody changes it, stops that table. Any other
ends the query, and its next start repeats the batch. Texts of delta-rs and Spark may quote rows: only
those of object stores and file systems are shown. Credentials that have expired (403, ExpiredToken)
concern all tables and may be renewed, so that they stop none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa
from deltalake.exceptions import DeltaError

from informix_capture_client.errors import TargetUnavailable
from informix_cdc.lake.mirrored_table import RELOAD, TableStopped


class _Refusal(NamedTuple):
    text: re.Pattern[
        str
    ]  # in the message of delta-rs 1.6.6, or the condition of Delta Lake 4.4 in Spark
    reason: str
    remedy: str


_REFUSALS = [
    _Refusal(
        re.compile(
            r"failed validation check|DELTA_VIOLATE_CONSTRAINT|NOT_NULL_(CONSTRAINT|ASSERT)_VIOLAT"
        ),
        "a CHECK constraint or NOT NULL column of its target refuses a row.",
        "Drop the constraint.",
    ),
    _Refusal(
        re.compile(r"is append-only|DELTA_CANNOT_MODIFY_APPEND_ONLY"),
        "its target is append-only.",
        "Set the table property delta.appendOnly to false.",
    ),
    _Refusal(
        re.compile(r"Unsupported table features required: \[([\w, ]+)\]"),
        "its target has table features that delta-rs cannot write: {}.",
        "Remove them from the table, or set engine to spark.",
    ),
    _Refusal(
        re.compile(r"catalog-managed table"),
        "its target is managed by a catalog.",
        "Use a table that is not managed by a catalog.",
    ),
    _Refusal(
        re.compile(
            r"Object at location .* not found|FAILED_READ_FILE.FILE_NOT_EXIST|DELTA_FILE_NOT_FOUND"
        ),
        "files of its target are missing.",
        "Move the target away, so that a new one is made.",
    ),
    _Refusal(
        re.compile(r"Permission denied|AccessDenied", re.IGNORECASE),
        "its target cannot be written: permission is denied.",
        "Give the user of this process the right to read and write the folder of the target.",
    ),
]


_REFUSED_VALUE = TableStopped("a value does not fit the type of its column in the target.", RELOAD)
# Their texts name a place, and never quote rows.
_OF_STORES = re.compile(
    r"(Generic (S3|GCS|MicrosoftAzure|HTTP|Hdfs|LocalFileSystem)\w* error: |The operation lacked ).+"
)
_ANSWER = re.compile(r"<\?xml.*?<Code>(\w+)</Code>.*")  # of a store
_PARAMETERS = re.compile(r"\?\S+")  # of a URL, where Azure has its signature
_KIND = re.compile(r"(?:[A-Z][A-Za-z ]* (?:error|found|failed)(?=: |$)(?:: )?)+")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")  # of an error of Spark
_BRANCH = re.compile(r" ?\x1b\[\d+m↳\x1b\[0m ?")
_MOST_CHARACTERS = 400


def refusal_in(error: Exception) -> TableStopped | None:
    """Return why a table refuses writes for good; None if the error may pass."""
    if isinstance(error, pa.ArrowInvalid):
        return _REFUSED_VALUE
    text = _plain(error)
    for each in _REFUSALS:
        if found := each.text.search(text):
            return TableStopped(each.reason.format(*found.groups()), f"{each.remedy} {RELOAD}")
    return None


def _plain(error: Exception) -> str:
    """Return the text of an error in one line: delta-rs draws the causes as a tree, in colours."""
    return _BRANCH.sub(": ", " ".join(str(error).split()))


def _is_of_the_lake(error: Exception) -> bool:
    of_spark = type(error).__module__.partition(".")[0] in ("pyspark", "py4j")
    return of_spark or isinstance(error, (DeltaError, OSError, pa.ArrowInvalid))


@contextmanager
def permanent_errors() -> Iterator[None]:
    """Stop a table that refuses writes for good.

    Raises:
        TableStopped: in place of the error of delta-rs or Spark.
    """
    try:
        yield
    except Exception as error:
        if not _is_of_the_lake(error) or (stop := refusal_in(error)) is None:
            raise
        raise stop from None


@contextmanager
def coded_errors(into: str) -> Iterator[None]:
    """Give errors of the lake a code, and leave out what may be a cell.

    Args:
        into: where the tables are.

    Raises:
        TargetUnavailable: in place of the error of delta-rs, a file system or Spark.
    """
    try:
        yield
    except Exception as error:
        if not _is_of_the_lake(error):
            raise
        raise TargetUnavailable(
            f"the tables in {into} cannot be read or written: {shown_of(error)}.",
            "Check place, credentials and network. Nothing is lost: the next start repeats the batch.",
        ) from None


def shown_of(error: Exception) -> str:
    """Return the part of an error of delta-rs, a file system or Spark that quotes no row."""
    text = _plain(error)
    if found := _OF_STORES.search(text):
        shown = _PARAMETERS.sub("", _ANSWER.sub(r"\1", found[0]))
    elif isinstance(error, OSError) and error.strerror:  # of a system call
        shown = error.strerror + (f": {error.filename}" if error.filename else "")
    else:
        found = _CONDITION.search(text) or _KIND.match(text)
        shown = f"{type(error).__name__} {found[0].rstrip(': ') if found else ''}".strip()
    return shown[:_MOST_CHARACTERS].rstrip(".")
