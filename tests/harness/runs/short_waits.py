"""Shorten the product's pauses: a live server needs time for what an emulator does at once.

Rule: only periods after which the product looks again, and patience that no test is about. A test about
one of them sets it; a simulation has a clock of its own, and the product's own periods.
"""

from __future__ import annotations

from types import ModuleType

from informix_cdc.capture import server_watch
from informix_cdc.snapshots import awaited_ends, reading, snapshots

# Between two looks, or until nothing more is expected.
SHORT: list[tuple[ModuleType, str, float]] = [
    (awaited_ends, "ASK_SECONDS", 0.05),
    (awaited_ends, "QUIET_SECONDS", 0.2),
    (reading, "_MARK_SECONDS", 0.05),
    (reading, "_LOCK_PAUSE_SECONDS", 0.1),
    (server_watch, "SAMPLE_SECONDS", 0.1),
    (snapshots, "AGE_SECONDS", 0.1),
    (snapshots, "_SILENT_SECONDS", 0.1),
]
OWN = [(module, name, getattr(module, name)) for module, name, _ in SHORT]


def shorten_waits() -> None:
    """Let the product look again soon, from here on and in this process."""
    for module, name, seconds in SHORT:
        setattr(module, name, seconds)
