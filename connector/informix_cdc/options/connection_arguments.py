"""The flags with which a command reaches the server of given options: for commands that are shown.

Rule: no secret, and nothing that may hold one. A password is asked for when the command runs.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from informix_cdc.options.connection import ConnectionOptions
from informix_cdc.options.connection_string import for_the_driver
from informix_cdc.options.declaring import flag_of, option_name

if TYPE_CHECKING:
    from informix_cdc.options.source import SourceOptions

# Tables are arguments of their own. A command that fetches a password may have one written into it.
_NOT_SHOWN = {
    *("tables", "table_exclude", "connection_string"),
    *("password", "password_command", "allow_password_option"),
}
TO_CONNECT = tuple(
    option_name(field) for field in fields(ConnectionOptions) if field.name not in _NOT_SHOWN
)


def connection_arguments(options: SourceOptions) -> tuple[str, ...]:
    """Return flags that name the server, the database and how to connect; defaults are left out."""
    given: list[str] = []
    for field in fields(ConnectionOptions):
        value = getattr(options, field.name)
        if field.name in _NOT_SHOWN or value == field.default:
            continue
        if field.name == "user" and value == options.dialect.owner:
            continue
        given += (flag_of(option_name(field)), str(value))
    if for_driver := for_the_driver(options.connection_string):
        given += (flag_of("connectionString"), for_driver)
    return tuple(given)
