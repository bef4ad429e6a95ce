"""Let the shop of docker/informix/workload.sql sell: an order a second, until stopped.

    python workload.py host=informix passwordFile=/run/secrets/informix_password
    python workload.py client=informix-driver host=informix passwordFile=/run/secrets/informix_password

Rule: it shares nothing with the product, not even the driver: `ibm_db` writes over DRDA, or
`informix-driver` over SQLI, so that what the product shows was written by other hands. What an order
changes stands in the SQL; here is when.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

SHOP = {"database": "stores", "user": "informix", "client": "ibm_db", "server": "informix"}
_LOCALE = "en_US.utf8"
ONE_ORDER = "EXECUTE PROCEDURE informix.shop_order()"
PAUSE_SECONDS = 1.0


def sell(
    connection: Any,  # noqa: ANN401 - of whatever driver, by PEP 249
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Place one order after the other; each call is a transaction."""
    while True:
        with closing(connection.cursor()) as cursor:
            cursor.execute(ONE_ORDER)
        sleep(PAUSE_SECONDS)


def over_drda(words: Mapping[str, str]) -> Any:  # noqa: ANN401
    """Connect by IBM's Db2 client."""
    import ibm_db_dbi  # here: the scripts of this folder are read where it is not installed

    connection = ibm_db_dbi.connect(connection_string(words), "", "")
    connection.set_autocommit(True)
    return connection


def connection_string(words: Mapping[str, str]) -> str:
    """Return a string of the Db2 client, in which no value can hold a semicolon or a brace."""
    pairs = {
        "DATABASE": words["database"],
        "HOSTNAME": words["host"],
        "PORT": words.get("port", "9089"),  # where the developer images listen for DRDA
        "PROTOCOL": "TCPIP",
        "UID": words["user"],
        "PWD": _password(words),
    }
    for key, value in pairs.items():
        if any(sign in value for sign in ";{}"):
            raise SystemExit(f"workload: {key} has one of ; {{ }}, which ibm_db's string cannot hold.")
    return "".join(f"{key}={value};" for key, value in pairs.items())


def over_sqli(words: Mapping[str, str]) -> Any:  # noqa: ANN401
    """Connect by informix-driver, which needs no client kit and runs on arm64 too."""
    import informix_db

    return informix_db.connect(
        words["host"],
        int(words.get("port", "9088")),
        user=words["user"],
        password=_password(words),
        database=words["database"],
        server=words["server"],
        client_locale=_LOCALE,
        env={"DB_LOCALE": _LOCALE},
        autocommit=True,
    )


def _password(words: Mapping[str, str]) -> str:
    return Path(words["passwordFile"]).read_text(encoding="utf-8").strip()


CLIENTS: dict[str, Callable[[Mapping[str, str]], Any]] = {
    "ibm_db": over_drda,
    "informix-driver": over_sqli,
}


def main(arguments: Sequence[str]) -> None:
    """Connect by words name=value, and sell."""
    words = SHOP | dict(argument.split("=", 1) for argument in arguments)
    connect = CLIENTS.get(words["client"])
    if connect is None:
        raise SystemExit(f"workload: client is one of {', '.join(CLIENTS)}, not {words['client']}.")
    with closing(connect(words)) as connection:
        sell(connection)


if __name__ == "__main__":
    main(sys.argv[1:])
