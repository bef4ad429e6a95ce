"""Load the ODBC driver as the product does, and say so; else end with one sentence.

    python check_driver.py [informix|gbase8s]

Rule: runs while the image is built, so that a missing library shows there and not at the first capture.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from informix_capture_client.dialects import DIALECTS, INFORMIX
from informix_capture_client.errors import InformixCdcError
from informix_capture_client.transport import ConnectionSettings, load_driver


def main(arguments: Sequence[str]) -> int:
    """Return 0 when the driver that INFORMIXDIR (GBASEDBTDIR) holds can be loaded."""
    dialect = DIALECTS[arguments[0]] if arguments else INFORMIX
    nowhere = ConnectionSettings(
        host="", port=0, server="", database="", user="", password="", dialect=dialect
    )
    try:
        driver, _ = load_driver(nowhere)
    except InformixCdcError as error:
        sys.stderr.write(f"check_driver: {error}\n")
        return 1
    sys.stdout.write(f"check_driver: {driver} loads\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
