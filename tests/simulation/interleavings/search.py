"""Every interleaving of a snapshot with transactions, and whether what comes out is ever untrue.

Rule: the server's steps are the model's, what the snapshot decides is the product's. A scan reads
key after key, as a SELECT that is not atomic; the reader of the log lags as it likes.

    idle -> chosen -> reading -> read -> waiting -> idle for the next chunk
            low        keys       clock   marker, barrier

What a consumer has that upserts and deletes must equal the committed rows at every place of the stream
behind a chunk, for the keys of that chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from simulation.interleavings import server as model
from simulation.interleavings.product import History, News, Product, Waiting, place_of
from simulation.interleavings.server import KEYS, Effects, Rules, Server, SetUp, Values

IDLE, CHOSEN, READING, READ, TICKED, MARKED = "idle", "chosen", "reading", "read", "ticked", "marked"
_WAITING = (READ, TICKED, MARKED)
OLDER = 0  # the transaction that was open before the stream, where there is one


@dataclass(frozen=True)
class Variant:
    """A way to take a snapshot.

    Attributes:
        isolation: what readers see of rows that are locked: dirty, committed (they wait), last.
        is_buffered: the database's logging.
        slots: of the transactions.
        chunks: the keys of each chunk.
        asks_first: asks for the open transactions before the low watermark is chosen, which is wrong.
        by_number: the barrier is a place in the log, and no marker is written.
        crashes: the capture dies once, between any two steps.
        has_timeouts: a TIMEOUT may come while a chunk waits.
        older: a transaction was open before the stream and is left out: nothing is delivered until it
            has ended (anchor), or the snapshot alone waits (wait), or nobody does.
    """

    isolation: str = "last"
    is_buffered: bool = False
    slots: tuple[int, ...] = (1, 2)
    chunks: tuple[tuple[int, ...], ...] = (KEYS,)
    asks_first: bool = False
    by_number: bool = False
    crashes: bool = False
    has_timeouts: bool = False
    older: str = ""


class Snapshot(NamedTuple):
    """What the capture remembers. Numbers are counts of commits in the log."""

    chunk: int = 0
    phase: str = IDLE
    low: int = -1
    asked: frozenset[int] | None = None
    begun_at: int = 0
    rows: Effects = ()
    second: int = 0
    log_end: int | None = None
    has_timeout: bool = False
    known_from: int = 0  # touched keys
    watched_from: int = 0  # slots
    open_at_start: frozenset[int] = frozenset()
    has_crashed: bool = False


class Delivered(NamedTuple):
    """What came into the stream: a transaction, or a chunk of these keys; and how much of the log."""

    reached: int
    effects: Effects
    chunk: tuple[int, ...] = ()


class State(NamedTuple):
    """All of it; `seen` is how much of the log the stream has shown."""

    server: Server
    seen: int
    snapshot: Snapshot
    delivered: tuple[Delivered, ...]


class Found(NamedTuple):
    """The outcome of a search: how many states there are, how many of them ends, and what is wrong."""

    states: int
    ends: int
    wrong: str


class Search:
    """Looks at every state that can be reached."""

    def __init__(self, variant: Variant) -> None:
        self._variant = variant
        self._product = Product(variant.slots)

    def explore(self, set_up: SetUp) -> Found:
        """Follow every step from a set-up on, to the first end that is wrong."""
        programs, values = set_up
        rules = Rules(programs, self._variant.is_buffered, self._variant.slots)

        @cache  # many states have the same server
        def moves(server: Server) -> list[Server]:
            return list(model.steps(server, rules))

        start = State(Server.at_start(values, len(programs)), 0, Snapshot(), ())
        waiting, known, ends = [start], {start}, 0
        while waiting:
            state = waiting.pop()
            nexts = [each for each in self._steps(state, moves) if each not in known]
            known.update(nexts)
            waiting += nexts
            if self._is_over(state, programs):
                ends += 1
                if wrong := _wrong(state, values):
                    return Found(len(known), ends, f"{set_up}: {wrong}: {state.delivered}")
        return Found(len(known), ends, "")

    def _is_over(self, state: State, programs: tuple[model.Program, ...]) -> bool:
        server = state.server
        is_idle = all(phase == model.DONE for _, phase in server.phases)
        return is_idle and state.seen == len(server.log) and self._is_done(state.snapshot)

    def _is_done(self, snapshot: Snapshot) -> bool:
        is_emitted = snapshot.chunk == len(self._variant.chunks)
        return is_emitted or (self._variant.by_number and snapshot.phase == READ)

    def _steps(self, state: State, moves: Callable[[Server], list[Server]]) -> Iterator[State]:
        for server in moves(state.server):
            yield state._replace(server=server)
        for seen in {state.seen + 1, state.server.flushed}:
            if state.seen < seen <= state.server.flushed:
                yield self._after_reading(state, seen)
        if state.snapshot.chunk < len(self._variant.chunks):
            yield from self._snapshot_steps(state)

    # the stream

    def _after_reading(self, state: State, seen: int, has_timeout: bool = False) -> State:
        shown = _part(state.server, state.seen, seen)
        delivered = self._delivered(state, shown)
        news = News(shown, delivered, has_timeout, seen)
        rows = tuple(Delivered(place + 1, made.effects) for place, made in delivered)
        moved = state._replace(seen=seen, delivered=state.delivered + rows)
        if self._is_before_anchor(state):  # the stream, and what is known of it, begins behind
            return moved._replace(snapshot=state.snapshot._replace(known_from=seen))
        if state.snapshot.phase not in _WAITING:
            return moved
        return self._after_waiting(state, moved, news)

    def _delivered(self, state: State, shown: History) -> History:
        if not self._variant.older:
            return shown
        if self._is_before_anchor(state):
            return ()
        return tuple(each for each in shown if each[1].transaction != OLDER)

    def _is_before_anchor(self, state: State) -> bool:
        return self._variant.older == "anchor" and not _has_ended(state, state.seen)

    def _after_waiting(self, before: State, state: State, news: News) -> State:
        """Return the state once the chunk that waits has heard the news."""
        snapshot = state.snapshot
        keys = tuple(key for key, value in snapshot.rows if value is not None)
        waiting = Waiting(
            place_of(snapshot.low),
            snapshot.begun_at,
            snapshot.known_from,
            keys,
            snapshot.second,
            snapshot.log_end,
        )
        shown = _part(state.server, snapshot.known_from, before.seen)
        if self._variant.older:
            shown = tuple(each for each in shown if each[1].transaction != OLDER)
        kept = self._product.emitted(waiting, shown, news)
        if kept is None:
            return state
        rows = tuple((key, value) for key, value in snapshot.rows if key in kept)
        chunk = Delivered(state.seen, rows, self._variant.chunks[snapshot.chunk])
        following = snapshot._replace(
            chunk=snapshot.chunk + 1,
            phase=IDLE,
            rows=(),
            low=-1,
            begun_at=0,
            second=0,
            log_end=None,
            has_timeout=False,
            known_from=state.seen,
        )
        return state._replace(snapshot=following, delivered=(*state.delivered, chunk))

    # the snapshot

    def _snapshot_steps(self, state: State) -> Iterator[State]:
        snapshot = state.snapshot
        if self._variant.crashes and not snapshot.has_crashed:
            yield state._replace(snapshot=self._after_crash(state))
        for following in _STEPS[snapshot.phase](self, state):
            yield following if isinstance(following, State) else state._replace(snapshot=following)
        is_drained = self._variant.has_timeouts and state.seen == state.server.flushed
        if snapshot.phase in _WAITING and is_drained and not snapshot.has_timeout:
            heard = state._replace(snapshot=snapshot._replace(has_timeout=True))
            yield self._after_reading(heard, state.seen, has_timeout=True)

    def _after_crash(self, state: State) -> Snapshot:
        return Snapshot(
            chunk=state.snapshot.chunk,
            known_from=state.seen,
            watched_from=state.seen,
            open_at_start=self._open_ids(state.server),
            has_crashed=True,
        )

    def _open_ids(self, server: Server) -> frozenset[int]:
        count = len(self._variant.slots)
        return frozenset(self._variant.slots[t] for t in range(count) if server.is_open(t))

    def _running(self, server: Server) -> frozenset[int]:
        """Return the ids of open transactions whose BEGINTX alone is in the log."""
        count = len(self._variant.slots)
        phases = [phase for _, phase in server.phases]
        return frozenset(
            self._variant.slots[t] for t in range(count) if server.is_open(t) and phases[t] == model.RUN
        )

    def _choose(self, state: State) -> Iterator[Snapshot]:
        snapshot = state.snapshot
        if self._variant.older in ("wait", "anchor") and not _has_ended(state, state.seen):
            return
        if self._variant.asks_first and snapshot.asked is None:
            yield snapshot._replace(asked=self._open_ids(state.server))
            return
        yield snapshot._replace(phase=CHOSEN, low=state.seen)

    def _settle(self, state: State) -> Iterator[Snapshot]:
        snapshot, server = state.snapshot, state.server
        again = snapshot._replace(phase=IDLE, low=-1, asked=None)
        asked = self._open_ids(server) if snapshot.asked is None else snapshot.asked
        shown = _part(server, snapshot.watched_from, state.seen)
        running = self._running(server)
        low = self._product.settled(
            shown, running, asked, place_of(snapshot.low), snapshot.open_at_start
        )
        # a place between two commits is that of the earlier one
        place = -1 if low is None else low // place_of(1)
        if place < 0 or not self._product.begins(place_of(place), snapshot.known_from):
            yield again
            return
        yield again._replace(phase=READING, low=place, begun_at=state.seen)

    def _read(self, state: State) -> Iterator[Snapshot]:
        snapshot, server = state.snapshot, state.server
        keys = self._variant.chunks[snapshot.chunk]
        key = keys[len(snapshot.rows)]
        for value in _READ_BY[self._variant.isolation](server, key):
            rows = (*snapshot.rows, (key, value))
            if len(rows) < len(keys):
                yield snapshot._replace(rows=rows)
            else:
                end = place_of(len(server.log)) if self._variant.by_number else None
                second = 1 << 20 if self._variant.by_number else server.second
                yield snapshot._replace(phase=READ, rows=rows, second=second, log_end=end)

    def _tick(self, state: State) -> Iterator[State]:
        if not self._variant.by_number:
            ticked = state.server._replace(second=state.server.second + 1)
            yield state._replace(server=ticked, snapshot=state.snapshot._replace(phase=TICKED))

    def _mark(self, state: State) -> Iterator[State]:
        marked = model.marked(state.server, self._variant.is_buffered)
        yield state._replace(server=marked, snapshot=state.snapshot._replace(phase=MARKED))

    def _wait(self, _state: State) -> Iterator[State]:
        yield from ()


_STEPS = {
    IDLE: Search._choose,
    CHOSEN: Search._settle,
    READING: Search._read,
    READ: Search._tick,
    TICKED: Search._mark,
    MARKED: Search._wait,
}


def _part(server: Server, first: int, end: int) -> History:
    return tuple((place, server.log[place]) for place in range(first, end))


def _has_ended(state: State, seen: int) -> bool:
    """Tell whether the stream has shown the end of the older transaction."""
    server = state.server
    commits = [made.transaction for made in server.log]
    if OLDER in commits:
        return OLDER in commits[:seen]
    return server.phases[OLDER][1] == model.DONE


# what a SELECT is given of a row; nothing while it waits


def _dirty(server: Server, key: int) -> Iterator[str | None]:
    yield server.values[KEYS.index(key)]


def _committed(server: Server, key: int) -> Iterator[str | None]:
    if server.owner(key) is None:
        yield from _dirty(server, key)


def _last_committed(server: Server, key: int) -> Iterator[str | None]:
    owner = server.owner(key)
    if owner is None:
        yield from _dirty(server, key)
    elif ("truncate",) not in server.images[owner]:  # it locks the table: readers wait
        yield dict(server.hidden[owner])[key]


_READ_BY = {"dirty": _dirty, "committed": _committed, "last": _last_committed}


def _wrong(state: State, start: Values) -> str:
    """Return what a consumer has at some place that is not what was committed there."""
    truth = state.server.committed_rows(start)
    have: dict[int, str | None] = {}
    covered: set[int] = set()
    for one in state.delivered:
        have |= dict(one.effects)
        covered |= set(one.chunk)
        for key in covered:
            if have.get(key) != truth[one.reached][key]:
                return (
                    f"key {key} is {have.get(key)!r} at place {one.reached}, and"
                    f" {truth[one.reached][key]!r} was committed"
                )
    return ""
