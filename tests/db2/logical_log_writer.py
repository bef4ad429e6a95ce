"""Writes logical log records: packed from BMC's table of the header, nothing of the decoder is used.

Rule: every field has its offset and length as the page prints them, so that a field that the decoder
looks for elsewhere has another value.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

# name: offset, length, as printed
FIELDS = {
    "LENGTH": (0x00, 2), "SYSTEMID": (0x02, 4), "DBID": (0x06, 2), "PSID": (0x08, 2),
    "TBOBID": (0x0A, 2), "TBOWNERLEN": (0x0C, 2), "TBNAMELEN": (0x0E, 2), "DBNAME": (0x10, 8),
    "TSNAME": (0x18, 8), "TABLEOWNER": (0x20, 8), "TABLENAME": (0x28, 18), "PARTNUM": (0x3A, 2),
    "TIMESTAMP": (0x3C, 17), "LOGLRSN": (0x4D, 10), "LOGRBA": (0x57, 10), "MEMBERID": (0x61, 2),
    "RID": (0x63, 5), "CHANGETYPE": (0x68, 2), "SQLTYPE": (0x6A, 1), "LOGRECDISP": (0x6B, 1),
    "SQLSRCTYPE": (0x6C, 1), "LOGBYTES": (0x6D, 4), "LOGDELTA": (0x71, 2), "ANOMALYROWID": (0x73, 1),
    "ANOMALYTYPE": (0x74, 1), "ANOMALYRBA": (0x75, 10), "UORTIMESTAMP": (0x7F, 17),
    "UORCOMMITTIMESTAMP": (0x90, 17), "UORDISP": (0xA1, 1), "UORIDLRSN": (0xA2, 10),
    "UORID": (0xAC, 10), "SEGLEN": (0xB6, 2), "TOTALSEGS": (0xB8, 2), "SEGNUM": (0xBA, 2),
    "UORCOMMITLRSN": (0xC0, 10), "UORCOMMITPOINT": (0xCA, 10), "CONNECTIONTYPE": (0xD4, 2),
    "CONNECTID": (0xD6, 8), "CORRELATIONID": (0xDE, 12), "AUTHID": (0xEA, 8), "PLAN": (0xF2, 8),
    "LUWNETWORKID": (0xFA, 8), "LUWNAME": (0x102, 8), "LUWINSTANCENO": (0x10A, 6),
    "LUWSEQUENCENO": (0x110, 2), "INCOMPLETETRANS": (0x112, 1), "INCOMPLETEDEP": (0x113, 1),
    "UORHASCOMP": (0x114, 1), "SQLRIRBA": (0x115, 10), "PAGENUMFMT": (0x11F, 1),
}  # fmt: skip
NUMBERS = {
    *("LENGTH", "DBID", "PSID", "TBOBID", "TBOWNERLEN", "TBNAMELEN", "PARTNUM", "MEMBERID"),
    *("LOGBYTES", "LOGDELTA", "ANOMALYROWID", "SEGLEN", "TOTALSEGS", "SEGNUM", "LUWSEQUENCENO"),
}
MOMENTS = {"TIMESTAMP", "UORTIMESTAMP", "UORCOMMITTIMESTAMP"}
BYTES = {
    *("LOGLRSN", "LOGRBA", "RID", "ANOMALYRBA", "UORIDLRSN", "UORID", "UORCOMMITLRSN"),
    *("UORCOMMITPOINT", "LUWINSTANCENO", "SQLRIRBA"),
}
USUAL: dict[str, object] = {
    "LENGTH": 288, "SYSTEMID": "DB2A", "DBID": 256, "PSID": 2, "TBOBID": 3, "TBOWNERLEN": 4,
    "TBNAMELEN": 3, "DBNAME": "DSNDB", "TSNAME": "TSEMP", "TABLEOWNER": "TEST", "TABLENAME": "EMP",
    "PARTNUM": 1, "TIMESTAMP": "20121031202525690096123456789000000"[:34],
    "LOGLRSN": "00CA670FBBF3D3000000", "LOGRBA": "00000000123456789ABC", "MEMBERID": 7,
    "RID": "0000000211", "CHANGETYPE": "I ", "SQLTYPE": "R", "LOGRECDISP": "C", "SQLSRCTYPE": "T",
    "LOGBYTES": 123456, "LOGDELTA": -5, "ANOMALYROWID": 200, "ANOMALYTYPE": "N",
    "ANOMALYRBA": "00112233445566778899", "UORTIMESTAMP": "2012103120252469009600000000000000",
    "UORCOMMITTIMESTAMP": "2012103120252669009600000000000000", "UORDISP": "C",
    "UORIDLRSN": "00CA670FBBF3D0000000", "UORID": "0000000012345678AAAA", "SEGLEN": 0, "TOTALSEGS": 1,
    "SEGNUM": 1, "UORCOMMITLRSN": "00CA670FBBF3D9000000", "UORCOMMITPOINT": "0000000012345678FFFF",
    "CONNECTIONTYPE": "02", "CONNECTID": "BATCH", "CORRELATIONID": "JOB12345", "AUTHID": "USER1",
    "PLAN": "DSNTEP2", "LUWNETWORKID": "NET", "LUWNAME": "LU1", "LUWINSTANCENO": "CA670FBBF3D3",
    "LUWSEQUENCENO": 9, "INCOMPLETETRANS": " ", "INCOMPLETEDEP": "Y", "UORHASCOMP": "N",
    "SQLRIRBA": "99887766554433221100", "PAGENUMFMT": "R",
}  # fmt: skip


def header(places: Mapping[str, tuple[int, int]] = FIELDS, size: int = 288, **fields: object) -> bytes:
    made = bytearray(b"\xee" * size)
    made[188:192] = b"\0\0\0\0" if size == 288 else made[188:192]
    for name, value in {**USUAL, "LENGTH": size, **fields}.items():
        at, width = places[name]
        made[at : at + width] = _packed(name, value, width)
    return bytes(made)


def _packed(name: str, value: object, width: int) -> bytes:
    if name in NUMBERS:
        return int(value).to_bytes(width, "big", signed=name == "LOGDELTA")  # type: ignore[call-overload]
    if name in MOMENTS | BYTES:
        return bytes.fromhex(str(value))
    return str(value).ljust(width).encode("cp037")


def image(data: bytes, own: int = 0) -> bytes:
    return struct.pack(">H", len(data) + own) + data


def payload(images: list[bytes], reading: str) -> bytes:
    """Write images in one of the ways that the page's words allow."""
    own = 2 if reading.endswith("inclusive") else 0
    joined = b"".join(image(data, own) for data in images)
    return struct.pack(">H", len(joined) + 2) + joined if reading.startswith("total") else joined


def rdw(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">HH", len(body) + 4, 0) + body for body in bodies)


def bdw(*blocks: bytes, counts_itself: bool = True, extended: bool = False) -> bytes:
    more = 4 if counts_itself else 0
    made = b""
    for block in blocks:
        size = len(block) + more
        made += struct.pack(">I", 0x80000000 | size) if extended else struct.pack(">HH", size, 0)
        made += block
    return made


def xhdf(name: str, at: int, width: int, kind: str = "CHAR") -> bytes:
    """Write a description of a header field, as the control file has one for each."""
    return (f"XHDF{name:<18}{kind:<4} {width:05d}{at:05d}").encode("cp037")
