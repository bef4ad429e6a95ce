"""Deliver rows from the driver's spool to the executors.

Rule: values sent to executors are small, picklable and without secrets, except for the Flight token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from informix_capture_client.lazy_names import lazy_names
from informix_cdc.executors.flight_protocol import (
    TOKEN_HEADER,
    Credentials,
    FlightAddress,
    ReaderAccess,
    location_of,
    stream_of,
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
    from informix_cdc.executors.flight_server import rows_of_ticket

__all__ = [
    "TOKEN_HEADER",
    "Authority",
    "Credentials",
    "FlightAddress",
    "ReaderAccess",
    "SegmentPlaces",
    "SegmentPublisher",
    "call_options",
    "flight_connection",
    "is_refused",
    "location_of",
    "may_be_reached_later",
    "rows_of_ticket",
    "share_out",
    "stream_of",
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
        "rows_of_ticket": "flight_server",
        **dict.fromkeys(_CLIENT, "flight_client"),
    },
)
