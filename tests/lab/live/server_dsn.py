"""The server that INFORMIX_CDC_TEST_DSN names: an ODBC connection string.

    HOST=db1;SERVICE=9088;SERVER=informix;UID=informix;PWD={a;b};DATABASE=scratch;DRIVER=/opt/.../libthcli.so

`DATABASE` is a logged database in which tests may make tables; it is created if there is none of that
name (default ifxcdc_test). `DRIVER` is the path of the driver library; else INFORMIX_CDC_TEST_DRIVER or
INFORMIXDIR says where it is. Other keywords go to the driver as they are.

Rule: the text holds a password, so no error quotes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from informix_capture_client.dialects import DIALECTS, INFORMIX, Dialect
from informix_capture_client.errors import BadOption
from informix_capture_client.transport.base import ConnectionSettings
from informix_capture_client.transport.keywords import read_keywords

DSN_VARIABLE = "INFORMIX_CDC_TEST_DSN"
DRIVER_VARIABLE = "INFORMIX_CDC_TEST_DRIVER"
DIALECT_VARIABLE = "INFORMIX_CDC_TEST_DIALECT"
DEFAULT_DATABASE = "ifxcdc_test"

_REQUIRED = ("HOST", "SERVICE", "SERVER", "UID", "PWD")
_KNOWN = (*_REQUIRED, "DATABASE", "DRIVER")


class BadDsn(ValueError):
    """The variable does not hold a connection string of the form above."""


@dataclass(frozen=True, slots=True)
class NamedServer:
    """A server that someone else runs."""

    settings: ConnectionSettings
    dialect: str = INFORMIX.name


def named_server(environment: Mapping[str, str]) -> NamedServer | None:
    """Return the server that the environment names, or None.

    Raises:
        BadDsn: a keyword is missing or makes no sense; the text itself is not quoted.
    """
    if not (text := environment.get(DSN_VARIABLE, "").strip()):
        return None
    try:
        given = {keyword.name.upper(): keyword.value for keyword in read_keywords(text)}
    except BadOption:
        raise BadDsn(f"{DSN_VARIABLE} is not KEY=value;KEY=value") from None
    if missing := [key for key in _REQUIRED if not given.get(key)]:
        raise BadDsn(f"{DSN_VARIABLE} has no {', '.join(missing)}")
    if not given["SERVICE"].isdecimal():
        raise BadDsn(f"SERVICE in {DSN_VARIABLE} is not a port number")
    dialect = environment.get(DIALECT_VARIABLE) or INFORMIX.name
    if dialect not in DIALECTS:
        raise BadDsn(f"{DIALECT_VARIABLE} is not one of {', '.join(DIALECTS)}")
    return NamedServer(_settings(given, environment, DIALECTS[dialect]), dialect)


def _settings(
    given: Mapping[str, str], environment: Mapping[str, str], dialect: Dialect
) -> ConnectionSettings:
    return ConnectionSettings(
        host=given["HOST"],
        port=int(given["SERVICE"]),
        server=given["SERVER"],
        database=given.get("DATABASE") or DEFAULT_DATABASE,
        user=given["UID"],
        password=given["PWD"],
        driver=given.get("DRIVER") or environment.get(DRIVER_VARIABLE, ""),
        dialect=dialect,
        extra=";".join(f"{key}={value}" for key, value in given.items() if key not in _KNOWN),
    )
