"""Deliver rows from the driver's spool to the executors.

Rule: values sent to executors are small, picklable and without secrets, except for the Flight token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from informix_capture_client.lazy_names import lazy_names
from informix_cdc.executors.flight_process import FlightProcess
from informix_cdc.executors.flight_protocol import (
    AdmittedReader,
    Credentials,
    FlightAddress,
    ReaderAccess,
    digest_of,
    error_from_json,
    no_rows_named,
)
from informix_cdc.executors.places import SegmentPlaces
from informix_cdc.executors.publisher import SegmentPublisher
from informix_cdc.executors.shares import share_out

if TYPE_CHECKING:  # these load Flight or cryptography
    from informix_cdc.executors.certificates import certificate_of_reader, certificate_of_server
    from informix_cdc.executors.flight_client import (
        call_options,
        flight_connection,
        is_refused,
        may_be_reached_later,
        why_refused,
    )
    from informix_cdc.executors.flight_server import FlightServer
    from informix_cdc.executors.relay import Relay

__all__ = [
    "AdmittedReader",
    "Credentials",
    "FlightAddress",
    "FlightProcess",
    "FlightServer",
    "ReaderAccess",
    "Relay",
    "SegmentPlaces",
    "SegmentPublisher",
    "call_options",
    "certificate_of_reader",
    "certificate_of_server",
    "digest_of",
    "error_from_json",
    "flight_connection",
    "is_refused",
    "may_be_reached_later",
    "no_rows_named",
    "share_out",
    "why_refused",
]

_CLIENT = (
    *("call_options", "flight_connection", "is_refused"),
    *("may_be_reached_later", "why_refused"),
)
__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("certificate_of_reader", "certificate_of_server"), "certificates"),
        "FlightServer": "flight_server",
        "Relay": "relay",
        **dict.fromkeys(_CLIENT, "flight_client"),
    },
)
