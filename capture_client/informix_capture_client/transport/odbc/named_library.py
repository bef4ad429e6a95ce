"""A shared library that gives another one a second name.

Rule: makes bytes only. The loader finds a library that is already open by its SONAME. Where that is not
the name that others need it by, a library without code is opened that has this name as its SONAME, and
needs the other one by its path; the loader then finds all symbols through it.

    ELF header | 3 program headers | dynamic section | symbol table | hash table | strings

Source: System V ABI, "ELF Header", "Program Header", "Dynamic Section", "Hash Table"; 64 bits.
"""

from __future__ import annotations

import struct

_HEADER_BYTES, _PROGRAM_BYTES, _ENTRY_BYTES, _SYMBOL_BYTES = 64, 56, 16, 24
_SHARED, _LOAD, _DYNAMIC, _STACK = 3, 1, 2, 0x6474E551
_WRITE_READ, _PAGE_BYTES = 6, 65_536  # the largest page of a machine that a driver exists for
_END, _NEEDED, _HASH, _STRINGS, _SYMBOLS = 0, 1, 4, 5, 6
_STRINGS_SIZE, _SYMBOL_SIZE, _SONAME = 10, 11, 14
_FLAGS_AT, _MACHINE_AT, _BITS_64 = 48, 18, 2


def named_library(name: str, path: str, head: bytes) -> bytes:
    """Return a library named `name` that needs the library at `path`.

    Args:
        name: its SONAME.
        path: of the other library, absolute.
        head: the first 64 bytes of the other library, for machine and byte order.

    Raises:
        ValueError: that is no ELF file of 64 bits.
    """
    if len(head) < _HEADER_BYTES or not head.startswith(b"\x7fELF") or head[4] != _BITS_64:
        raise ValueError(f"{path} is not an ELF file of 64 bits")
    order = "<" if head[5] == 1 else ">"
    strings = b"\0" + name.encode() + b"\0" + path.encode() + b"\0"
    dynamic_at = _HEADER_BYTES + 3 * _PROGRAM_BYTES
    symbols_at = dynamic_at + 8 * _ENTRY_BYTES
    hash_at = symbols_at + _SYMBOL_BYTES
    strings_at = hash_at + 16
    size = strings_at + len(strings)
    entries = {
        _SONAME: 1,
        _NEEDED: 2 + len(name.encode()),
        _HASH: hash_at,
        _STRINGS: strings_at,
        _SYMBOLS: symbols_at,
        _STRINGS_SIZE: len(strings),
        _SYMBOL_SIZE: _SYMBOL_BYTES,
        _END: 0,
    }
    programs = (
        (_LOAD, 0, size, _PAGE_BYTES),
        (_DYNAMIC, dynamic_at, len(entries) * _ENTRY_BYTES, 8),
        (_STACK, 0, 0, 16),  # without it a loader asks for a stack that may be executed
    )
    (machine,) = struct.unpack_from(f"{order}H", head, _MACHINE_AT)
    (flags,) = struct.unpack_from(f"{order}I", head, _FLAGS_AT)
    counts = (_HEADER_BYTES, _PROGRAM_BYTES, len(programs), 0, 0, 0)
    header = struct.pack(
        f"{order}HHIQQQIHHHHHH", _SHARED, machine, 1, 0, _HEADER_BYTES, 0, flags, *counts
    )
    lines = [
        struct.pack(f"{order}IIQQQQQQ", kind, _WRITE_READ, at, at, at, length, length, align)
        for kind, at, length, align in programs
    ]
    lines += [struct.pack(f"{order}QQ", *entry) for entry in entries.items()]
    table = struct.pack(f"{order}4I", 1, 1, 0, 0)  # one bucket for the one symbol, which is none
    return head[:16] + header + b"".join(lines) + bytes(_SYMBOL_BYTES) + table + strings
