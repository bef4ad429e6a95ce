"""Judge whether a capture finds full row logging on, or what it means that it has to be switched on.

Rule: facts in, one finding out. A start that changes the server is a warning, not "ok".
"""

from __future__ import annotations

from informix_capture_client.catalog import HaRole, unqualified
from informix_capture_client.findings import Finding, Unanswered, ok, warning

_CHECK = "full row logging"


def check_row_logging(
    table: str, is_on: bool, user: str, owner: str, role: HaRole | Unanswered
) -> Finding:
    """Judge one table; only `owner`, by the guide, and only on a primary, can switch it on."""
    if is_on:
        return ok(_CHECK, "logs full rows.", table=table)
    name = unqualified(table)
    if isinstance(role, HaRole) and role.is_secondary:
        found = "does not log full rows, and a secondary cannot switch that on."
        return warning(
            _CHECK, found, f"Connect to the primary: informix-cdc acquire {name}", table=table
        )
    if user != owner:
        found = f"does not log full rows; the guide lets only user {owner} switch that on."
        return warning(_CHECK, found, f"As user {owner}: informix-cdc acquire {name}", table=table)
    found = "does not log full rows; the first start of a capture switches it on for good"
    if isinstance(role, Unanswered):
        found += ", unless this server is a secondary, which could not be checked"
    return warning(
        _CHECK,
        f"{found}. From then on the server refuses ALTER TABLE.",
        f"Alter it before that; or later, after informix-cdc release {name}",
        table=table,
    )
