"""What an encoder returns: rows in batches, made one after the other.

Rule: nothing is encoded before it is asked for, and nothing is kept of what was handed out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.transactions import CommittedTransactions


@dataclass(slots=True)
class LeftOut:
    """How many changes a policy has left out so far."""

    truncates: int = 0


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows in batches of `schema`, which are made while they are iterated over, once."""

    schema: pa.Schema
    _batches: Iterator[pa.RecordBatch]
    _left_out: LeftOut

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches

    @property
    def ignored_truncates(self) -> int:
        """How many TRUNCATEs the policy has left out so far; all of them after the last batch."""
        return self._left_out.truncates


def sound_part(
    encode: Callable[[Sequence[CommittedTransactions]], EncodedRows],
    transactions: Sequence[CommittedTransactions],
) -> list[CommittedTransactions]:
    """Return the transactions before the first that cannot be encoded."""
    sound: list[CommittedTransactions] = []
    for one in [one for batch in transactions for one in batch.each()]:
        try:
            for _ in encode([one]):
                pass
        except InformixCdcError:
            break
        sound.append(one)
    return sound
