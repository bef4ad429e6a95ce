"""A stream that is looked at without Spark is not taken for dead before it has begun."""

from __future__ import annotations

import pytest

from informix_capture_client.errors import ConnectionLost
from informix_capture_client.stream import Silence
from informix_cdc.commands.following import _Contact


def test_a_session_that_opens_within_the_first_wait_may_be_silent_at_first() -> None:
    """Then no `Starting` is ever answered, and silence would count from the machine's own start."""
    _Contact(60.0).require(Silence())


def test_a_server_that_is_silent_for_too_long_is_refused() -> None:
    with pytest.raises(ConnectionLost, match="sent nothing"):
        _Contact(-1.0).require(Silence())
