"""Let the shop of docker/informix/workload.sql sell: an order a second, until stopped.

    python workload.py host=informix passwordFile=/run/secrets/informix_password

Rule: it shares nothing with the product, not even the driver: `ibm_db` writes over DRDA, so that what
the product shows was written by other hands. What an order changes stands in the SQL; here is when.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

SHOP = {
    "database": "stores",
    "user": "informix",
    "port": "9089",  # where the developer images listen for DRDA
}
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


def connection_string(words: Mapping[str, str]) -> str:
    """Return a string of the Db2 client, in which no value can hold a semicolon or a brace."""
    pairs = {
        "DATABASE": words["database"],
        "HOSTNAME": words["host"],
        "PORT": words["port"],
        "PROTOCOL": "TCPIP",
        "UID": words["user"],
        "PWD": Path(words["passwordFile"]).read_text(encoding="utf-8").strip(),
    }
    for key, value in pairs.items():
        if any(sign in value for sign in ";{}"):
            raise SystemExit(f"workload: {key} has one of ; {{ }}, which ibm_db's string cannot hold.")
    return "".join(f"{key}={value};" for key, value in pairs.items())


def main(arguments: Sequence[str]) -> None:
    """Connect by words name=value, and sell."""
    import ibm_db_dbi  # here: the scripts of this folder are read where it is not installed

    words = SHOP | dict(argument.split("=", 1) for argument in arguments)
    with closing(ibm_db_dbi.connect(connection_string(words), "", "")) as connection:
        connection.set_autocommit(True)
        sell(connection)


if __name__ == "__main__":
    main(sys.argv[1:])
