"""How often a word lies in the memory of this process and of all that it has started, by role.

The word and the options of a query come to such a program by standard input: an argument would be in
the memory of whoever is started.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_BLOCK = 1 << 24


def copies_by_role(word: str) -> dict[str, dict[str, int]]:
    """Count the copies of a word in this process and in all that it has started."""
    found: dict[str, dict[str, int]] = {}
    for process in descendants(os.getpid()):
        try:
            role = role_of(process)
            copies = copies_in(process, [word.encode(), word.encode("utf-16-le")])
        except (FileNotFoundError, ProcessLookupError):  # a Python worker has ended meanwhile
            continue
        counted = found.setdefault(role, {"processes": 0, "copies": 0})
        counted["processes"] += 1
        counted["copies"] += copies
    return found


def role_of(process: int) -> str:
    """Tell an executor's processes from the driver's, and a JVM from a Python worker."""
    is_executor = any(b"CoarseGrainedExecutorBackend" in command_of(each) for each in lineage(process))
    kind = "JVM" if b"java" in command_of(process).partition(b"\0")[0] else "Python"
    return f"{'executor' if is_executor else 'driver'} {kind}"


def command_of(process: int) -> bytes:
    return Path(f"/proc/{process}/cmdline").read_bytes()


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def lineage(process: int) -> Iterator[int]:
    while process > 1:
        yield process
        process = parent_of(process)


def descendants(ancestor: int) -> list[int]:
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    found = []
    for process in numbers:
        try:
            if ancestor in lineage(process):
                found.append(process)
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
    return found


def copies_in(process: int, forms: list[bytes]) -> int:
    """Count how often one of the forms lies in the writable memory of a process."""
    count, overlap = 0, max(map(len, forms))
    maps = Path(f"/proc/{process}/maps").read_text().splitlines()
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        for line in maps:
            places, rights, *_ = line.split()
            begin, end = (int(number, 16) for number in places.split("-"))
            if not rights.startswith("rw"):
                continue
            for block in range(begin, end, _BLOCK):
                try:
                    memory.seek(block)
                    held = memory.read(min(_BLOCK + overlap, end - block))
                except OSError:  # a guard page
                    continue
                count += sum(held.count(form) for form in forms)
    return count
