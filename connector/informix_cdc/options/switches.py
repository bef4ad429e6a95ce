"""Switches in the driver's environment against options that run code there.

Rule: who sets the environment of the driver decides, not who sets options: on a server that many share,
somebody who can send it SQL alone can set options. Whatever is no clear yes forbids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from informix_capture_client.errors import BadOption
from informix_capture_client.transport import read_keywords

if TYPE_CHECKING:
    from informix_cdc.options.connection import ConnectionOptions

# INFORMIX_CDC_PASSWORD_COMMAND and INFORMIX_CDC_DRIVER stand for flags of the command line.
COMMAND_SWITCH = "INFORMIX_CDC_ALLOW_PASSWORD_COMMAND"
DRIVER_SWITCH = "INFORMIX_CDC_ALLOW_DRIVER_OPTION"
_YES = ("", "yes", "true", "on", "1")
# What names a library in a connection string: IBM's Client SDK, the keys of odbc.ini.
_LIBRARIES = ("driver", "translationdll", "translationlibrary")


def forbidden_by(switch: str, environment: Mapping[str, str]) -> str:
    """Return what a switch is set to if it forbids, as `NAME=value`; else nothing."""
    said = environment.get(switch, "").strip().lower()
    return "" if said in _YES else f"{switch}={said}"


def require_allowed_driver(options: ConnectionOptions, environment: Mapping[str, str]) -> None:
    """Refuse option driver where it is switched off; the one of INFORMIXDIR is the environment's own.

    A library's code runs as soon as it is loaded, before anybody can ask whether it is a driver.

    Raises:
        BadOption: the option, or connectionString, names one, and the environment forbids it.
    """
    if not (said := forbidden_by(DRIVER_SWITCH, environment)):
        return
    named = [each.name for each in read_keywords(options.connection_string)]
    in_string = [name for name in named if name.lower() in _LIBRARIES]
    if options.driver or in_string:
        what = "option 'driver'" if options.driver else f"{in_string[0]} in option 'connectionString'"
        raise BadOption(
            f"{what} is not taken: {said} is set here.",
            "Leave it away: the driver under INFORMIXDIR (GBASEDBTDIR) of this environment is loaded.",
            option="driver" if options.driver else "connectionString",
        )
