"""The servers that the suite is put to; the live one is skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.servers.capture_server import CaptureServer
from harness.servers.emulated import emulated
from odbc_driver.build import build_drivers

EMULATED = {"emulator": "informix", "emulator-odbc": "informix", "emulator-gbase8s": "gbase8s"}
LIVE = {"live": "clean_live_informix", "live-sqli": "clean_live_informix_over_sqli"}
KINDS = [*EMULATED, *(pytest.param(kind, marks=pytest.mark.informix) for kind in LIVE)]


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[CaptureServer]:
    if request.param in LIVE:
        yield request.getfixturevalue(LIVE[request.param])
        return
    driver = str(build_drivers().narrow) if request.param == "emulator-odbc" else ""
    with emulated(driver, EMULATED[request.param]) as server:
        yield server
