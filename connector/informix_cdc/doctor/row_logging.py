"""Judge whether a capture finds full row logging on, or what it means that it has to be switched on.

Rule: facts in, one finding out. A start that changes the server is a warning, not "ok".
"""

from __future__ import annotations

from collections.abc import Sequence

from informix_capture_client.catalog import HaRole
from informix_capture_client.findings import Finding, Unanswered, ok, warning
from informix_capture_client.shell_commands import table_argument
from informix_capture_client.sql_names import TableName

_CHECK = "full row logging"
_OF_USER = ("--user", "--password-file", "--password-command")


def check_row_logging(
    name: TableName,
    is_on: bool,
    user: str,
    owner: str,
    role: HaRole | Unanswered,
    connection: Sequence[str] = (),
) -> Finding:
    """Judge one table; only `owner`, by the guide, and only on a primary, can switch it on.

    `connection` has the flags that name the server in the commands that are shown, each with a value.
    """
    table = str(name)
    if is_on:
        return ok(_CHECK, "logs full rows.", table=table)
    acquire = ("acquire", table_argument(name), *connection)
    if isinstance(role, HaRole) and role.is_secondary:
        found = "does not log full rows, and a secondary cannot switch that on."
        return warning(_CHECK, found, "Connect to the primary:", table=table, command=acquire)
    if user != owner:
        found = f"does not log full rows; the guide lets only user {owner} switch that on."
        acquire = ("acquire", table_argument(name), *_as_owner(connection, owner))
        return warning(_CHECK, found, f"As user {owner}:", table=table, command=acquire)
    found = "does not log full rows; the first start of a capture switches it on for good"
    if isinstance(role, Unanswered):
        found += ", unless this server is a secondary, which could not be checked"
    return warning(
        _CHECK,
        f"{found}. From then on the server refuses ALTER TABLE.",
        "Alter it before that; or later, after:",
        table=table,
        command=("release", table_argument(name), *connection, "--checkpoint", "PLACE"),
    )


def _as_owner(connection: Sequence[str], owner: str) -> tuple[str, ...]:
    """Return the flags for the owner: the user and the password of somebody else do not serve.

    The owner is named, since a profile or the environment may name the other user.
    """
    pairs = zip(connection[::2], connection[1::2], strict=True)
    kept = (pair for pair in pairs if pair[0] not in _OF_USER)
    return (*(word for pair in kept for word in pair), "--user", owner)
