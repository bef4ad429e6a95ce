"""Let the shop of docker/informix/workload.sql sell: an order a second, until stopped.

    python workload.py host=informix server=informix passwordFile=/run/secrets/informix_password

Rule: what an order changes stands in the SQL; here is only when.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing

from informix_capture_client.transport import Transport
from informix_cdc.options import SourceOptions
from informix_cdc.server import open_connection

SHOP = {
    "database": "stores",
    "table": "informix.orders",
    "dbLocale": "en_US.utf8",
    "readTimeoutSeconds": "20",  # gives an order a minute to be answered
}
ONE_ORDER = "EXECUTE PROCEDURE informix.shop_order()"
PAUSE_SECONDS = 1.0


def sell(transport: Transport, sleep: Callable[[float], None] = time.sleep) -> None:
    """Place one order after the other."""
    while True:
        transport.rows(ONE_ORDER)
        sleep(PAUSE_SECONDS)


def main(arguments: Sequence[str]) -> None:
    """Connect by the source's own options, given as name=value, and sell."""
    options = SourceOptions.parse(SHOP | dict(argument.split("=", 1) for argument in arguments))
    with closing(open_connection(options, options.database)) as transport:
        sell(transport)


if __name__ == "__main__":
    main(sys.argv[1:])
