"""Limit the restart position by the server's list of open transactions.

Rule: it does not depend on records that a server may hide from a session (decision 0103). A server may
send a BEGINTX only with the transaction's first captured row, and nothing of transactions that began
before the session, so the lowest BEGINTX received is not a safe limit. Every transaction that may still
commit after `commit` must have begun at or after `restart`, according to the server's list.

    sample     position P of the log's end, then the open transactions, then the log's end E
    of each    lower bound of its begin: the last P at which its id was not listed, the start of the log
               file that the server names, or the last end that the stream has received for the id
    settled    once the stream has passed E, everything that ended before the list was read is at or
               before `commit`. So later commits began at or after P, or are listed: the lowest of these
               is valid
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from informix_capture_client.catalog import OpenSample
from informix_capture_client.positions import SettlingRestart
from informix_capture_client.stream import Answer, Read
from informix_capture_client.transactions import LastNumbers, ends_of
from informix_cdc.companions import Companion
from informix_cdc.snapshots import QuietTime, has_passed


class _Sample(NamedTuple):
    """A sample: for each open transaction, the lower bound of its begin."""

    place: int
    begins: Mapping[int, int]
    log_end: int

    def lowest(self, ends: LastNumbers | None = None) -> int:
        """Return the lower bound of the begin of everything that commits after the sample is passed.

        Transactions with the same id do not overlap: one that has not ended began after the last end of
        its id.
        """
        begins = np.array(list(self.begins.values()), np.int64)
        if ends is not None:
            begins = np.maximum(begins, ends.of(np.array(list(self.begins), np.int64)))
        return min(self.place, int(begins.min(initial=self.place)))


_NOTHING = _Sample(0, {}, 0)


@dataclass(slots=True)
class RestartBound(Companion):
    """Determines how far the restart position of one stream may advance, over all its sessions.

    Any thread may offer samples; only the capture thread uses everything else.

    Attributes:
        is_buffered: whether commits may be missing in the readable log for a while.
        is_wanted: whether another sample could advance the restart position.
        is_refused: whether the server has refused to list open transactions.
        settling: the latest limit that is not valid yet, for the offset: it may become valid in the
            next process, because a run of AvailableNow may end before.
    """

    settling: SettlingRestart | None = None
    is_buffered: bool = True
    is_wanted: bool = field(default=False, init=False)
    is_refused: bool = field(default=False, init=False)
    _offered: OpenSample | None = field(default=None, init=False)
    _previous: _Sample = field(default=_NOTHING, init=False)  # the newest, to compare the next one with
    _latest: _Sample | None = field(default=None, init=False)  # the newest, unless it is settling
    _waiting: _Sample | None = field(
        default=None, init=False
    )  # the sample of `settling`, if it is ours
    _ends: LastNumbers = field(default_factory=LastNumbers, init=False)  # of this session
    _settled: int = field(default=0, init=False)  # in this session
    _quiet: QuietTime = field(default_factory=QuietTime, init=False)

    def offer(self, sample: OpenSample) -> None:
        """Add a sample; only the newest counts."""
        self._offered = sample

    def begin_session(self, is_buffered: bool) -> None:
        """Start with another session, which may read again what the previous one has passed."""
        self.is_buffered = is_buffered
        self._ends, self._settled = LastNumbers(), 0
        self._quiet.restart()

    def begin_stream(self) -> None:
        """Forget everything: positions of another stream may be lower."""
        self.settling = self._offered = self._latest = self._waiting = None
        self._previous = _NOTHING

    def on_read(self, answer: Answer, now: float) -> Answer:
        """Return the answer, followed by a valid position if the restart position may advance."""
        if (sample := self._offered) is not None:
            self._offered = None
            self._add(sample)
        if not isinstance(answer, Read):
            return answer
        if answer.block is not None:
            self._ends.raise_to(*ends_of(answer.block))
        while (settling := self.settling) is not None:
            seconds = self._quiet.seconds(answer, now)
            if not has_passed(answer, settling.log_end, seconds, is_buffered=self.is_buffered):
                break
            self._settle(settling)
        passed = answer.assembler.raise_restart_bound(self._settled)
        self.is_wanted = answer.assembler.is_restart_held
        return answer if passed is None else replace(answer, events=[*answer.events, passed])

    def _add(self, sample: OpenSample) -> None:
        """Determine the lower bound of the begin of each transaction.

        An id that was listed before may belong to another transaction now, which began even later.
        """
        previous = self._previous
        begins = {
            key: max(log_start, previous.begins.get(key, previous.place))
            for key, log_start in sample.begins.items()
        }
        self._previous = self._latest = _Sample(sample.place, begins, sample.log_end)
        if self.settling is None:
            self._wait_for_latest()

    def _wait_for_latest(self) -> None:
        self._waiting, self._latest = self._latest, None
        self._quiet.restart()
        waiting = self._waiting
        self.settling = waiting and SettlingRestart(waiting.lowest(), waiting.log_end)

    def _settle(self, settling: SettlingRestart) -> None:
        bound = settling.restart if self._waiting is None else self._waiting.lowest(self._ends)
        self._settled = max(self._settled, bound)
        self._wait_for_latest()
