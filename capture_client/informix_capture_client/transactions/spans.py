"""Sort the records of a block by transaction, as columns.

Rule: columns in, columns out; records are not processed one by one. A *span* has the records of one
owner of a transaction id within a run, in the order of the stream:

    stream   B1 r1 B2 r2 r1 C2 r1 C1      (B BEGINTX, r row, C COMMTX; of transactions 1 and 2)
    spans    [B1 r1 r1 r1 C1] [B2 r2 C2]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from informix_capture_client.records import Bits, Integers, RecordBlock, RecordKind, is_one_of

# Members of an enumeration take as long to look up as to compare a hundred of them.
_BEGINTX, _DISCARD = int(RecordKind.BEGINTX), int(RecordKind.DISCARD)
ENDS = is_one_of(RecordKind.COMMTX, RecordKind.RBTX)
_FEW_IDS = 1 << 16  # NumPy sorts 16-bit numbers by radix, in linear time


class Run(NamedTuple):
    """Records of a block that are assembled together: from `first` to `end`, all of transactions."""

    block: RecordBlock
    first: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """The spans of a run; one entry per span, except in `order`.

    Attributes:
        order: places of records in the block, span after span.
        firsts, ends: where each span lies in `order`, end exclusive.
        transaction_ids: the id of each.
        begins: whether it starts with BEGINTX.
        closes: whether it ends with COMMTX or RBTX.
        has_discard: whether a DISCARD is among its records.
        is_first: whether it is the first of its transaction id.
        follows_open: whether its id was left open by the span before it.
    """

    order: Integers
    firsts: Integers
    ends: Integers
    transaction_ids: Integers
    begins: Bits
    closes: Bits
    has_discard: Bits
    is_first: Bits
    follows_open: Bits


def spans_of(run: Run) -> Spans:
    """Return the spans of a run with at least one record."""
    block, of_run = run.block, slice(run.first, run.end)
    ids = block.transaction_ids[of_run]
    order = _stable_order(ids)
    kinds, ids = block.raw.kinds[of_run][order], ids[order]
    begins, ends = kinds == _BEGINTX, ENDS[kinds]
    is_new_id = np.ones(len(ids), bool)
    is_new_id[1:] = ids[1:] != ids[:-1]
    starts = begins | is_new_id
    starts[1:] |= ends[:-1]
    bounds = np.flatnonzero(np.append(starts, True))
    firsts, stops = bounds[:-1], bounds[1:]
    closes, is_first = ends[stops - 1], is_new_id[firsts]
    follows_open = ~is_first
    follows_open[1:] &= ~closes[:-1]
    return Spans(
        order + run.first,
        firsts,
        stops,
        ids[firsts],
        begins[firsts],
        closes,
        np.logical_or.reduceat(kinds == _DISCARD, firsts),
        is_first,
        follows_open,
    )


def first_low_record(block: RecordBlock, spans: Spans) -> int | None:
    """Return the place of the first record whose number is below its BEGINTX, if any."""
    numbers = block.sequence_numbers[spans.order]
    begins = numbers[spans.firsts]
    wrong = np.flatnonzero(spans.begins & (np.minimum.reduceat(numbers, spans.firsts) < begins))
    if len(wrong) == 0:
        return None
    slices = [slice(spans.firsts[span], spans.ends[span]) for span in wrong.tolist()]
    low = [spans.order[of][numbers[of] < numbers[of][0]] for of in slices]
    return int(np.concatenate(low).min())


def _stable_order(ids: Integers) -> Integers:
    low, high = int(ids.min()), int(ids.max())
    if high - low < _FEW_IDS:
        return np.argsort((ids - low).astype(np.uint16), kind="stable")
    return np.argsort(ids, kind="stable")
