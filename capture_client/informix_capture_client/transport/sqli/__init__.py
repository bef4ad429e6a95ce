"""SQLI, Informix's client/server protocol: the client's side of it, without a socket.

Rule: values in, bytes out; bytes in, values out. Who opens connections, waits and gives up is
`transport.sqli`. Nothing here is specific to captures but that a capture session is read like a smart
large object.
"""

from __future__ import annotations

from informix_capture_client.transport.sqli import requests
from informix_capture_client.transport.sqli.answers import Answer, AnswerReader, ServerError
from informix_capture_client.transport.sqli.challenge import Conversation, Granted, ready, response
from informix_capture_client.transport.sqli.describing import (
    Column,
    Description,
    Opaque,
    Routine,
    SqliType,
    StatementKind,
)
from informix_capture_client.transport.sqli.incoming import EndOfBytes, Incoming
from informix_capture_client.transport.sqli.login import (
    Accepted,
    Login,
    Redirect,
    Refused,
    read_login_answer,
)
from informix_capture_client.transport.sqli.messages import Message, name_of
from informix_capture_client.transport.sqli.numbers import Qualifier, qualifier
from informix_capture_client.transport.sqli.protocols import Features, features, offer
from informix_capture_client.transport.sqli.requests import Request, Value
from informix_capture_client.transport.sqli.rows import Row, RowReader, simple_object_of
from informix_capture_client.transport.sqli.trace import HIDDEN, ConnectionTrace, WireTrace
from informix_capture_client.transport.sqli.tuples import Tuples

__all__ = [
    "HIDDEN",
    "Accepted",
    "Answer",
    "AnswerReader",
    "Column",
    "ConnectionTrace",
    "Conversation",
    "Description",
    "EndOfBytes",
    "Features",
    "Granted",
    "Incoming",
    "Login",
    "Message",
    "Opaque",
    "Qualifier",
    "Redirect",
    "Refused",
    "Request",
    "Routine",
    "Row",
    "RowReader",
    "ServerError",
    "SqliType",
    "StatementKind",
    "Tuples",
    "Value",
    "WireTrace",
    "features",
    "name_of",
    "offer",
    "qualifier",
    "read_login_answer",
    "ready",
    "requests",
    "response",
    "simple_object_of",
]
