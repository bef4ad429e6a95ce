"""The emulator's end of SQLI, as a door for noise: a login and requests in, nothing but bytes out.

Rule: a client's noise never raises, never waits for ever, and takes no more memory than it sends.
"""

from __future__ import annotations

import contextlib

from emulator.sqli.spoken import (
    CURSOR,
    EOT,
    OFFER_GBASE,
    OFFER_JDBC_4,
    OFFER_JDBC_15,
    OFFER_NMAP,
    char,
    login_packet,
    packed,
    sql,
)
from informix_emulator import EmulatedServer
from informix_emulator.connection import Connection
from informix_emulator.poses import POSES
from informix_emulator.sqli import Greeting, Prompt, converse
from informix_emulator.sqli.pam import PromptStyle
from informix_emulator.sqli.reading import take_from

_ORDERS = "stores:informix.orders"
_FULL_ANSWER_BYTES = 1 << 22


class _Wire:
    """Brings bytes, and ends a statement that waits: nothing more will come."""

    def __init__(self, data: bytes) -> None:
        self.take = take_from(data)
        self.sent = 0

    def check(self) -> None:
        raise EOFError

    def send(self, data: bytes) -> None:
        self.sent += len(data)
        assert self.sent < _FULL_ANSWER_BYTES, "so many bytes nobody asked for"

    def pass_over_late_interrupt(self) -> None:
        pass


def converse_with_noise(data: bytes) -> None:
    """Let a server hear noise; its first byte says which server it is."""
    server = EmulatedServer(
        timeout_seconds=0, poses_as=list(POSES)[(data[0] if data else 0) % len(POSES)]
    )
    server.create_database("stores", locale="en_US.819")
    server.create_table(
        _ORDERS, "id serial, name varchar(20), note lvarchar(90)", full_row_logging=True
    )
    asks = bool(data and data[0] & 0x80)
    greeting = Greeting(
        server.name,
        server.version,
        server.pose.protocols,
        prompts=(Prompt(PromptStyle.INFO, "i"), Prompt(PromptStyle.HIDDEN, "p")) if asks else (),
    )
    with contextlib.suppress(EOFError):
        converse(_Wire(data[1:]), lambda given: Connection(server, given), greeting, lambda: 0.0)
    assert not server.sessions(), "a client that has gone holds nothing"


def _sound(first: int, offer: str, *requests: str | bytes) -> bytes:
    agreed = packed("007e", char(bytes.fromhex(offer).decode("latin-1")), EOT)
    opened = packed("0024", char("stores"), "0000", EOT)
    user = "gbasedbt" if list(POSES)[first % len(POSES)] == "gbase8s" else "informix"
    login = login_packet(server="informix", user=user)
    return bytes((first,)) + login + agreed + opened + packed(*requests)


_RUN = "execute function syscdcv1:informix."
_FETCH = ("0009 00001000 0000", EOT)

SOUND_CONVERSATIONS = (
    _sound(0, OFFER_JDBC_4, sql(f"{_RUN}cdc_opensess('informix', 0, 1, 9, 1, 1)"),
           f"0004 0001 {CURSOR} 0006 0004 0001", *_FETCH, "0061 0000 0001 00001000 7d00", EOT, "0038"),
    _sound(0, OFFER_JDBC_4, sql(f"{_RUN}cdc_opensess(?,?,?,?,?,?)", 6), "0004 0001 007c", EOT,
           f"0004 0001 {CURSOR} 0005 0006 002b 0000 0000 0000 0000 00000008 696e666f726d6978",
           "0002 0000 0a00 00000000 0002 0000 0a00 00000005 0002 0000 0a00 00000064",
           "0002 0000 0a00 00000001 0002 0000 0a00 00000001 0006 0004 0001", *_FETCH, "0025 0038"),
    _sound(3, OFFER_JDBC_15, sql("SELECT tabname, tabid FROM systables WHERE tabid > ?", 1),
           f"0004 0001 {CURSOR} 0018 002b 0005 0001 0000 0000 0000 0001 3100 0006", EOT,
           "0004 0001 0017 0006 00000001 00001000", EOT, "0035", EOT, "001a", EOT, "0038"),
    _sound(4, OFFER_GBASE, sql("SELECT tabname FROM systables"), f"0004 0001 {CURSOR} 0006", EOT,
           "0004 0001 0064 0001 0001 000d 000000ff", *_FETCH, "0054", EOT, "0038"),
    _sound(0, OFFER_NMAP, "0002 0000", char("SELECT tabname FROM systables"), "0016 0031", EOT,
           f"0004 0001 {CURSOR} 0006", EOT, "0004 0001 0009 1000 0000", EOT, "0038"),
    _sound(0x80, OFFER_JDBC_4, "0080", EOT, "0082", char("in4mix"), EOT, "0038"),
    _sound(0, OFFER_JDBC_4, "0023", EOT, "0089 0001 6100 0000", EOT, "008b 0001 6100", EOT,
           "0013", EOT),
)  # fmt: skip
