"""Other clients of a server: what they write and read is the oracle that the product is compared with.

Rule: nothing here imports the product, and no statement or driver is shared with it. `ibm_db` speaks
DRDA, for which the server needs a listener of its own (the developer images have one on 9089, by their
description). `pyodbc` takes the ODBC driver through a driver manager and its wide functions: on Linux
IBM's own driver refuses that (mkleehammer/pyodbc#1433), GBase's or a later one may not.
`informix-driver` speaks SQLI as the product does, in code of its own that its author ran on live 12.10,
14.10 and 15. None has been run against a live server by us.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

DRDA_PORT_VARIABLE = "INFORMIX_CDC_TEST_DRDA_PORT"
DRDA_PORT = 9089
_LOCALE = "en_US.utf8"
_WIDE_CHARACTERS = "-11060"  # how IBM's driver answers a connection string that it cannot read


class NoClient(Exception):
    """There is no such client here; the text is the reason of a skip."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server is, as each client needs it."""

    host: str
    port: int
    server: str
    database: str
    user: str
    password: str = field(repr=False)
    driver: str = ""
    drda_port: int = DRDA_PORT


@dataclass(frozen=True, slots=True)
class IndependentClient:
    """A connection of another driver, by PEP 249; each statement is committed by itself."""

    connection: Any

    def run(self, statement: str, *values: int | str) -> None:
        """Run one statement that returns nothing; values beyond ASCII are bound.

        informix-driver 2026.9.3 sends the text of a statement in ISO 8859-1, and values in its locale.
        """
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(statement, *([values] if values else []))

    def rows(self, statement: str) -> list[tuple[str | None, ...]]:
        """Return what a query finds, each value as text without the blanks that pad it."""
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(statement)
            return [tuple(map(_as_text, row)) for row in cursor.fetchall()]


def _as_text(value: object) -> str | None:
    return None if value is None else str(value).rstrip()


def drda_string(place: Place) -> str:
    """Return a connection string of the Db2 client."""
    pairs = {
        "DATABASE": place.database,
        "HOSTNAME": place.host,
        "PORT": place.drda_port,
        "PROTOCOL": "TCPIP",
        "UID": place.user,
        "PWD": place.password,
    }
    if bad := [key for key, value in pairs.items() if any(sign in str(value) for sign in ";{}")]:
        raise NoClient(f"{', '.join(bad)} has a sign that a connection string of ibm_db cannot hold")
    return "".join(f"{key}={value};" for key, value in pairs.items())


def odbc_string(place: Place) -> str:
    """Return a connection string of the Informix driver."""
    pairs = {
        "DRIVER": place.driver,
        "HOST": place.host,
        "SERVICE": place.port,
        "SERVER": place.server,
        "PROTOCOL": "onsoctcp",
        "DATABASE": place.database,
        "UID": place.user,
        "PWD": place.password,
        "DB_LOCALE": _LOCALE,
        "CLIENT_LOCALE": "en_us.utf8",
        "DELIMIDENT": "y",
    }
    return ";".join(f"{key}={_braced(str(value))}" for key, value in pairs.items())


def _braced(value: str) -> str:
    return "{" + value.replace("}", "}}") + "}" if any(sign in value for sign in ";{}") else value


def _over_drda(place: Place) -> Any:
    connection = _module("ibm_db_dbi", "ibm-db").connect(drda_string(place), "", "")
    connection.set_autocommit(True)
    return connection


def _over_odbc(place: Place) -> Any:
    module = _module("pyodbc", "pyodbc")
    module.pooling = False  # a connection that is closed is gone
    try:
        return module.connect(odbc_string(place), autocommit=True)
    except module.Error as reason:
        if _WIDE_CHARACTERS in str(reason):
            raise NoClient("pyodbc cannot connect to this driver: pyodbc#1433") from None
        raise


def _over_sqli(place: Place) -> Any:
    return _module("informix_db", "informix-driver").connect(
        place.host,
        place.port,
        user=place.user,
        password=place.password,
        database=place.database,
        server=place.server,
        client_locale=_LOCALE,
        env={"DB_LOCALE": _LOCALE},
        autocommit=True,
    )


CLIENTS: Mapping[str, Callable[[Place], Any]] = {
    "ibm_db": _over_drda,
    "pyodbc": _over_odbc,
    "informix_driver": _over_sqli,
}


@contextmanager
def independent_client(kind: str, place: Place) -> Iterator[IndependentClient]:
    """Connect by one of `CLIENTS`.

    Raises:
        NoClient: it is not installed, or cannot connect to this driver at all.
    """
    with closing(CLIENTS[kind](place)) as connection:
        yield IndependentClient(connection)


def _module(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as reason:
        raise NoClient(f"no {name} ({reason}): pip install 'informix-cdc[{extra}]'") from None


def place_of(settings: Any, environment: Mapping[str, str]) -> Place:
    """Return the place that settings of a connection name; they are only read."""
    return Place(
        host=settings.host,
        port=settings.port,
        server=settings.server,
        database=settings.database,
        user=settings.user,
        password=settings.password,
        driver=settings.driver,
        drda_port=int(environment.get(DRDA_PORT_VARIABLE) or DRDA_PORT),
    )
