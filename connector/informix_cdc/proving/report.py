"""The file that readers send us: which assumptions held, on which server, without data or secrets.

Rule: everything in it is listed here. No name of a host, user, database or table is an argument.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata

from informix_cdc.options import ConnectionOptions
from informix_cdc.proving.proofs import Outcome
from informix_cdc.proving.run import standing_of
from informix_cdc.version import __version__

FORMAT = 1
_DISTRIBUTION = "informix-cdc"


def report_of(
    outcomes: Sequence[Outcome],
    connection: ConnectionOptions,
    *,
    server_version: str,
    code_set: str,
    began: datetime,
    leftovers: int,
    is_interrupted: bool,
) -> dict[str, object]:
    """Return the report as JSON values.

    Args:
        outcomes: of the proofs that were run.
        connection: for the product, the transport and the encryption only.
        server_version: as the server prints it.
        code_set: Python's name of the code set of the database.
        began: when the run began.
        leftovers: the number of tables and databases that were left behind.
        is_interrupted: whether Ctrl-C ended the run.
    """
    standing = standing_of(outcomes)
    return {
        "format": FORMAT,
        "informix_cdc": __version__,
        "server": {"product": connection.dialect_name, "version": server_version, "code_set": code_set},
        "client": {
            "transport": connection.transport,
            "encryption": connection.encryption,
            "python": platform.python_version(),
            "system": f"{sys.platform} {platform.machine()}",
        },
        "began": began.astimezone(UTC).isoformat(timespec="seconds"),
        "seconds": round(sum(outcome.seconds for outcome in outcomes), 1),
        "interrupted": is_interrupted,
        "left_behind": leftovers,
        "summary": str(standing),
        "assumptions": {
            "held": [*standing.held],
            "deviated": [*standing.deviated],
            "not_tried": {str(number): why for number, why in standing.not_tried.items()},
        },
        "proofs": [_of_proof(outcome) for outcome in outcomes],
    }


def _of_proof(outcome: Outcome) -> dict[str, object]:
    proof = outcome.proof
    known: dict[str, object] = {
        "name": proof.name,
        "assumptions": [*proof.assumptions],
        "does": proof.does,
        "result": outcome.result.value,
        "contradicted": [*outcome.contradicted],
        "expected": outcome.expected,
        "found": outcome.found,
        "reason": outcome.reason,
        "observed": [*outcome.observed],
        "seconds": outcome.seconds,
    }
    return {name: value for name, value in known.items() if value or name in ("assumptions", "result")}


def place_to_send() -> str:
    """Return where reports go: the issue tracker of the package's metadata, if it names one."""
    try:
        urls = metadata.metadata(_DISTRIBUTION).get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        urls = []
    for entry in urls:
        label, _, url = str(entry).partition(",")
        if label.strip().lower() in ("issues", "issue tracker", "bug tracker", "tracker"):
            return url.strip()
    return "an issue of the project"
