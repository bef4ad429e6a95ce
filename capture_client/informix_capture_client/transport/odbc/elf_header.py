"""Read from a shared library's file for which machine it was built.

Rule: reads 20 bytes and loads nothing. For a driver of another architecture, the loader reports a file
that does not exist, or only `wrong ELF class`.

Source: System V ABI, "ELF Header": e_ident[EI_CLASS] at 4, e_ident[EI_DATA] at 5, e_machine at 18.
"""

from __future__ import annotations

import platform
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"\x7fELF"
_HEADER_BYTES = 20
_BITS = {1: 32, 2: 64}
_BYTE_ORDERS = {1: "<", 2: ">"}
# e_machine, and what `platform.machine()` says of such a host
_MACHINES = {
    3: ("x86", ("i386", "i486", "i586", "i686")),
    20: ("PowerPC", ("ppc",)),
    21: ("PowerPC 64", ("ppc64", "ppc64le")),
    22: ("IBM Z", ("s390", "s390x")),
    40: ("ARM", ("armv6l", "armv7l", "armv8l")),
    62: ("x86-64", ("x86_64", "amd64")),
    183: ("AArch64", ("aarch64", "arm64")),
}


@dataclass(frozen=True, slots=True)
class MachineBuild:
    """A machine and its address size in bits."""

    machine: str
    bits: int

    def __str__(self) -> str:
        return f"{self.machine} ({self.bits} bits)"


def build_of(path: str) -> MachineBuild | None:
    """Return the machine of a library; None if the file is not an ELF file or cannot be read."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEADER_BYTES)
    except OSError:
        return None
    if len(head) < _HEADER_BYTES or not head.startswith(_MAGIC):
        return None
    bits, order = _BITS.get(head[4]), _BYTE_ORDERS.get(head[5])
    if bits is None or order is None:
        return None
    (number,) = struct.unpack_from(f"{order}H", head, 18)
    name, _ = _MACHINES.get(number, (f"machine {number}", ()))
    return MachineBuild(name, bits)


def build_of_this_python() -> MachineBuild:
    """Return the machine that a library must be built for to be loaded by this process."""
    host = platform.machine().lower()
    bits = 64 if sys.maxsize > 1 << 32 else 32
    for name, hosts in _MACHINES.values():
        if host in hosts:
            # a 32-bit Python on a 64-bit x86 host
            return MachineBuild("x86" if (name, bits) == ("x86-64", 32) else name, bits)
    return MachineBuild(host, bits)
