"""What assumptions are put to: a live server, and the emulator as a rehearsal of the tests.

The emulator was built on these assumptions, so a rehearsal proves none of them: it proves that the
tests run, from the making of a database to the dropping of its tables, and which SQL they send.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.runs.tiers import rest_in_all
from harness.servers.capture_server import CaptureServer
from harness.servers.emulated import CANNOT, emulated_world
from lab.live.server_dsn import NamedServer
from lab.live.servers import capture_server
from odbc_driver.build import build_drivers

REHEARSALS = {"rehearsal": "informix", "rehearsal-sqli": "informix", "rehearsal-gbase8s": "gbase8s"}
LIVE = {"live": "clean_live_informix", "live-sqli": "clean_live_informix_over_sqli"}
KINDS = [*REHEARSALS, *(pytest.param(kind, marks=pytest.mark.informix) for kind in LIVE)]


@pytest.fixture(params=rest_in_all(KINDS))
def server(request: pytest.FixtureRequest) -> Iterator[CaptureServer]:
    if request.param in LIVE:
        yield request.getfixturevalue(LIVE[request.param])
        return
    dialect = REHEARSALS[request.param]
    driver = "" if request.param.endswith("sqli") else str(build_drivers().narrow)
    with emulated_world(driver, dialect) as world:
        server = capture_server(NamedServer(world.settings("ifxcdc_test"), dialect), world.open)
        server.add_user, server.cannot = world.server.users.__setitem__, CANNOT
        world.server.sbspace.files["/etc/passwd"] = b"root:x:0:0:root:/root:/bin/sh\n"
        yield server
        server.drop_tables()
