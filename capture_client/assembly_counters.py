"""How many transactions were left out, put aside or handed on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class AssemblyCounters:
    """What was left out or put aside, and why; counted because it must not happen silently."""

    transactions: int = 0
    empty_transactions: int = 0
    rolled_back_transactions: int = 0
    discarded_rows: int = 0
    unseen_transactions: int = 0
    abandoned_transactions: int = 0
    spilled_transactions: int = 0
    spilled_bytes: int = 0
