"""Deliver rows from the driver's spool to the executors.

Rule: values sent to executors are small, picklable and without secrets, except for the Flight token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from informix_capture_client.lazy_names import lazy_names
from informix_cdc.executors.flight_protocol import (
    Credentials,
    FlightAddress,
    ReaderAccess,
    stream_of,
    token_of,
)
from informix_cdc.executors.places import SegmentPlaces
from informix_cdc.executors.publisher import SegmentPublisher
from informix_cdc.executors.shares import share_out

if TYPE_CHECKING:  # these load Flight or cryptography
    from informix_cdc.executors.certificates import Authority
    from informix_cdc.executors.flight_client import (
        call_options,
        flight_connection,
        is_refused,
        may_be_reached_later,
        why_refused,
    )
    from informix_cdc.executors.flight_server import PrivateServer, rows_of_ticket

__all__ = [
    "Authority",
    "Credentials",
    "FlightAddress",
    "PrivateServer",
    "ReaderAccess",
    "SegmentPlaces",
    "SegmentPublisher",
    "call_options",
    "flight_connection",
    "is_refused",
    "may_be_reached_later",
    "rows_of_ticket",
    "share_out",
    "stream_of",
    "token_of",
    "why_refused",
]

_CLIENT = (
    *("call_options", "flight_connection", "is_refused"),
    *("may_be_reached_later", "why_refused"),
)
__getattr__ = lazy_names(
    __name__,
    {
        "Authority": "certificates",
        **dict.fromkeys(("PrivateServer", "rows_of_ticket"), "flight_server"),
        **dict.fromkeys(_CLIENT, "flight_client"),
    },
)
