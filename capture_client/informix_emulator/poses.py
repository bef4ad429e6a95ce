"""The servers that the emulator can imitate, one per row, with everything that differs between them.

What is not a column here is the same for all. `version` does not claim to be the real product. The bits
of the protocols of 12.10, 14.10 and 15 were captured from live servers by the author of informix-driver
2026.9.3 (tests/test_capabilities_unit.py there). Those of GBase 8s are the ones with which gbase8sdb
1.1.1 works; the bits of a live GBase 8s server are not known.
"""

from __future__ import annotations

from dataclasses import dataclass

# What a connection is in that names none, and so whatever its SQL makes (GLS User's Guide): the script
# that makes syscdcv1 names none. Of GBase 8s the guide says that syscdcv1 is in UTF-8.
DEFAULT_LOCALE = "en_US.819"


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
    protocols: bytes = bytes.fromhex("bdbe9ffe7fb7ffeff8")


_INFORMIX_14 = Pose("Informix emulator Version 14.10.FC10")

POSES = {
    "informix": _INFORMIX_14,
    "informix-12.10": Pose(
        "Informix emulator Version 12.10.FC14", protocols=bytes.fromhex("bdbe9ffe7fb7ffeff0")
    ),
    "informix-14.10": _INFORMIX_14,
    # tuple sizes of 4 bytes, row counts and rowids of 8
    "informix-15": Pose(
        "Informix emulator Version 15.0.1.0", protocols=bytes.fromhex("bdbe9ffe7fb7ffefff")
    ),
    # VARCHARs of 32 K: their lengths have 2 bytes
    "gbase8s": Pose(
        "GBase 8s emulator Version 12.10.FC4",
        "gbasedbt",
        "zh_CN.utf8",
        bytes.fromhex("fffc7ffc3c84aa8710"),
    ),
}


def pose_named(name: str) -> Pose:
    """Return a row of the table; ValueError names the others."""
    pose = POSES.get(name)
    if pose is None:
        raise ValueError(f"the emulator poses as one of {', '.join(POSES)}, not as {name!r}")
    return pose
