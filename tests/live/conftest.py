"""What assumptions are put to: a live server, and the emulator as a rehearsal of the tests.

The emulator was built on these assumptions, so a rehearsal proves none of them: it proves that the
tests run, and that the SQL they send is the SQL that the unit tests look at.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odbc_driver.build import build_drivers
from session_contract.capture_server import CaptureServer
from session_contract.emulated import emulated

REHEARSALS = {"rehearsal": "informix", "rehearsal-gbase8s": "gbase8s"}
KINDS = [*REHEARSALS, pytest.param("live", marks=pytest.mark.informix)]


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[CaptureServer]:
    if request.param == "live":
        live: CaptureServer = request.getfixturevalue("live_informix")
        yield live
        live.drop_tables()
        return
    with emulated(str(build_drivers().narrow), REHEARSALS[request.param]) as server:
        yield server
