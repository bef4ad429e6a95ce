"""Errors of delta-rs that concern one table, and last until somebody changes it.

Rule: any other error ends the query, and its next start repeats the batch. Texts of delta-rs are not
shown here, because they may quote rows. Credentials that have expired (403, ExpiredToken) concern all
tables and may be renewed, so that they are not in the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from deltalake.exceptions import DeltaError

from informix_cdc.lake.mirrored_table import RELOAD, TableStopped


class _Refusal(NamedTuple):
    text: re.Pattern[str]  # in the message of delta-rs 1.6.6
    reason: str
    remedy: str


_REFUSALS = [
    _Refusal(
        re.compile(r"failed validation check"),
        "a CHECK constraint or NOT NULL column of its target refuses a row.",
        "Drop the constraint.",
    ),
    _Refusal(
        re.compile(r"is append-only"),
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
        re.compile(r"Object at location .* not found"),
        "files of its target are missing.",
        "Move the target away, so that a new one is made.",
    ),
    _Refusal(
        re.compile(r"Permission denied|AccessDenied", re.IGNORECASE),
        "its target cannot be written: permission is denied.",
        "Give the user of this process the right to read and write the folder of the target.",
    ),
]


def refusal_in(error: Exception) -> TableStopped | None:
    """Return why a table refuses writes for good; None if the error may pass."""
    text = str(error)
    for each in _REFUSALS:
        if found := each.text.search(text):
            return TableStopped(each.reason.format(*found.groups()), f"{each.remedy} {RELOAD}")
    return None


@contextmanager
def permanent_errors() -> Iterator[None]:
    """Stop a table that refuses writes for good.

    Raises:
        TableStopped: in place of the error of delta-rs.
    """
    try:
        yield
    except (DeltaError, OSError) as error:
        if (stop := refusal_in(error)) is None:
            raise
        raise stop from None
