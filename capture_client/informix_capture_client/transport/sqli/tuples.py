"""Find the rows of a response in bulk: the position of each, without decoding it.

Rule: a row is found by the sizes of the rows before it, starting at the first. Bytes within a row that
look like the head of a row are never reached. NumPy checks all positions at once: a step per row costs
ten times as much. It is imported when rows arrive, so that the command line starts without it.

    SQ_TUPLE  u16 14, u16 warning, u32 size, size bytes, a zero where they are odd
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from informix_capture_client.transport.sqli.messages import Message

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HEAD_WORDS = 4  # messages begin at even places: all here is counted in words of 16 bits
_MOST_ROUNDS = 3  # of leaving out what only looks like a head


@dataclass(frozen=True, slots=True, eq=False)
class Tuples:
    """Consecutive rows: `data` with their heads, and the position of each row in it."""

    data: bytes
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    def cut(self, count: int) -> tuple[Tuples, Tuples]:
        """Return up to `count` rows, and the others."""
        if count >= len(self):
            return self, Tuples(b"", self.starts[:0], self.lengths[:0])
        end = int(self.starts[count])
        first = Tuples(self.data[:end], self.starts[:count], self.lengths[:count])
        return first, Tuples(self.data[end:], self.starts[count:] - end, self.lengths[count:])


def one_tuple(row: bytes) -> Tuples:
    """Return a single row."""
    import numpy as np

    return Tuples(row, np.zeros(1, np.int64), np.array([len(row)], np.int64))


def cut_tuples(arrived: memoryview) -> Tuples | None:
    """Return the complete rows at the start of the received bytes; None if the first is incomplete.

    >>> cut_tuples(memoryview(bytes.fromhex("000e0000000000016100" "000f"))).starts
    array([8])
    """
    import numpy as np

    count = len(arrived) // 2
    if count < _HEAD_WORDS:
        return None
    words = np.frombuffer(arrived, ">u2", count)
    if words[0] != Message.SQ_TUPLE:
        return None
    begins = np.flatnonzero(words[: 1 - _HEAD_WORDS] == Message.SQ_TUPLE)
    sizes = words[begins + 2].astype(np.int64) << 16 | words[begins + 3]
    ends = begins + _HEAD_WORDS + (sizes + 1) // 2
    is_whole = ends <= count
    begins, sizes, ends = begins[is_whole], sizes[is_whole], ends[is_whole]
    for _ in range(_MOST_ROUNDS):
        is_led_to = np.zeros(count + 1, np.bool_)
        is_led_to[0] = True
        is_led_to[ends] = True
        kept = is_led_to[begins]
        begins, sizes, ends = begins[kept], sizes[kept], ends[kept]
        if kept.all():
            break
    found = _linked(begins, ends)
    if not found:
        return None
    data = bytes(arrived[: 2 * int(ends[found - 1])])
    # copies: a view of a few rows would keep what was found of all that looked like one
    return Tuples(data, 2 * (begins[:found] + _HEAD_WORDS), sizes[:found].copy())


def _linked(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> int:
    """Return the number of consecutive rows from the first byte on."""
    import numpy as np

    if not len(begins) or begins[0]:
        return 0
    is_link = ends[:-1] == begins[1:]
    return len(begins) if is_link.all() else int(np.argmin(is_link)) + 1
