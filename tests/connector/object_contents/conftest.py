"""Both transports, of which each reads large objects in its own way."""

from __future__ import annotations

import pytest

from harness.runs.tiers import rest_in_all
from odbc_driver.build import build_drivers


@pytest.fixture(params=rest_in_all(["sqli", "odbc"]))
def way(request: pytest.FixtureRequest) -> dict[str, str]:
    """Options of the source."""
    if request.param == "sqli":
        return {"transport": "sqli"}
    return {"transport": "odbc", "driver": str(build_drivers().narrow)}
