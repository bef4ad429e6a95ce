"""Load the ODBC driver as the product does, and say so; else end with one sentence.

Rule: runs while the image is built, so that a missing library shows there and not at the first capture.
"""

from __future__ import annotations

import os
import sys

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.transport.odbc_api import OdbcApi
from informix_capture_client.transport.odbc_library import find_driver, load_library


def main() -> int:
    """Return 0 when the driver that INFORMIXDIR holds can be loaded."""
    try:
        driver = find_driver("", os.environ)
        OdbcApi(load_library(driver), decode=repr)
    except InformixCdcError as error:
        sys.stderr.write(f"check_driver: {error}\n")
        return 1
    sys.stdout.write(f"check_driver: {driver} loads\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
