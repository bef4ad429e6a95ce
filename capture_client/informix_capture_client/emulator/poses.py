"""Which server the emulator poses as: a row for each, and all that differs between them.

Rule: what is not a column here is the same for all. `version` does not pretend to be the real thing.
The bits of the protocols are what IBM's JDBC drivers (4.50: eight bytes, 15: nine) and gbase8sdb 1.1.1
work with; what a real server answers is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

# What a connection is in that names none, and so whatever its SQL makes (GLS User's Guide): the script
# that makes syscdcv1 names none. Of GBase 8s the guide says that syscdcv1 is in UTF-8.
DEFAULT_LOCALE = "en_US.819"
_PROTOCOLS = "fffc7ffc3c84aa87"


@dataclass(frozen=True, slots=True)
class Pose:
    """What clients can tell a server by.

    Args:
        version: what DBINFO('version', 'full') and the login's answer say.
        owner: who owns the system tables, and alone may capture until others are granted it (CDC
            guides, chapter 1).
        cdc_locale: the locale of syscdcv1.
        protocols: the feature bits that the server knows, see `sqli.dialect`.
    """

    version: str
    owner: str = "informix"
    cdc_locale: str = DEFAULT_LOCALE
    protocols: bytes = bytes.fromhex(_PROTOCOLS)


_INFORMIX_14 = Pose("Informix emulator Version 14.10.FC10")

POSES = {
    "informix": _INFORMIX_14,
    "informix-12.10": Pose("Informix emulator Version 12.10.FC14"),
    "informix-14.10": _INFORMIX_14,
    # tuple sizes of 4 bytes, row counts and rowids of 8
    "informix-15": Pose(
        "Informix emulator Version 15.0.1.0", protocols=bytes.fromhex(_PROTOCOLS + "06")
    ),
    # VARCHARs of 32 K: their lengths have 2 bytes
    "gbase8s": Pose(
        "GBase 8s emulator Version 12.10.FC4",
        "gbasedbt",
        "zh_CN.utf8",
        bytes.fromhex(_PROTOCOLS + "10"),
    ),
}


def pose_named(name: str) -> Pose:
    """Return a row of the table; ValueError names the others."""
    pose = POSES.get(name)
    if pose is None:
        raise ValueError(f"the emulator poses as one of {', '.join(POSES)}, not as {name!r}")
    return pose
