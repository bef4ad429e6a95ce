"""A server with row locks and a log, as values: every step that it can make from a state.

Rule: it shares no code with the product or the emulator, and keeps no version of a row but the one
that a lock hides. A commit is three steps: its record enters the log's buffer, the buffer is flushed,
the locks go. With unbuffered logging the committer flushes before its locks go; with buffered logging
anybody does, at any time. Readers of the log see flushed records only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

KEYS = (1, 2)
Operation = tuple[str, *tuple[int, ...]]
Program = tuple[tuple[Operation, ...], str]  # and C to commit, R to roll back
Values = tuple[str | None, ...]  # of the keys
Effects = tuple[tuple[int, str | None], ...]

RUN, FLUSH, RELEASE, DONE = "run", "flush", "release", "done"
MARKER = -1


class Commit(NamedTuple):
    """A COMMTX in the log: of which transaction, what it changed, as images and in effect, and when."""

    transaction: int
    images: tuple[Operation, ...]
    effects: Effects
    second: int


class Server(NamedTuple):
    """Its state. Of each transaction: what its locks hide, its images, its statement and phase."""

    values: Values
    hidden: tuple[Effects, ...]
    images: tuple[tuple[Operation, ...], ...]
    log: tuple[Commit, ...]
    flushed: int
    phases: tuple[tuple[int, str], ...]
    second: int

    @classmethod
    def at_start(cls, values: Values, transactions: int) -> Server:
        """Return a server with these rows whose transactions have not begun."""
        none: tuple[tuple[()], ...] = ((),) * transactions
        return cls(values, none, none, (), 0, ((0, RUN),) * transactions, 0)

    def owner(self, key: int) -> int | None:
        """Return the transaction that holds a lock of a key."""
        owners = (t for t, hidden in enumerate(self.hidden) if any(k == key for k, _ in hidden))
        return next(owners, None)

    def is_open(self, transaction: int) -> bool:
        """Tell whether `systrans` lists a transaction: from its first change until it has let go."""
        return bool(self.images[transaction]) and self.phases[transaction][1] != DONE

    def committed_rows(self, start: Values) -> list[dict[int, str | None]]:
        """Return what was committed at each place of the log, from the start on."""
        found = [dict(zip(KEYS, start, strict=True))]
        for commit in self.log:
            found.append(found[-1] | dict(commit.effects))
        return found


class Rules(NamedTuple):
    """What the transactions do, and how the server logs; transactions of one slot follow each other."""

    programs: tuple[Program, ...]
    is_buffered: bool = False
    slots: tuple[int, ...] = (1, 2)


def steps(server: Server, rules: Rules) -> Iterator[Server]:
    """Yield each state that one step of one transaction, or of the log, leads to."""
    for transaction, (operations, end) in enumerate(rules.programs):
        statement, phase = server.phases[transaction]
        if phase == RUN and statement == 0 and _waits_for_slot(server, rules, transaction):
            continue
        if phase == RUN and statement < len(operations):
            yield from _executed(server, transaction, operations[statement], statement)
        elif phase == RUN:
            yield _ended(server, transaction, end, rules.is_buffered)
        elif phase == FLUSH:
            flushed = server._replace(flushed=len(server.log))
            yield _in_phase(flushed, transaction, statement, RELEASE)
        elif phase == RELEASE:
            yield _without_locks(_in_phase(server, transaction, statement, DONE), transaction)
    if rules.is_buffered and server.flushed < len(server.log):
        yield server._replace(flushed=len(server.log))


def _waits_for_slot(server: Server, rules: Rules, transaction: int) -> bool:
    return any(
        rules.slots[other] == rules.slots[transaction] and server.phases[other][1] != DONE
        for other in range(transaction)
    )


def _executed(
    server: Server, transaction: int, operation: Operation, statement: int
) -> Iterator[Server]:
    """Yield the state after a statement; none while it waits for a lock."""
    name, *keys = operation
    wanted = keys or KEYS  # a TRUNCATE locks the table
    if any(server.owner(key) not in (None, transaction) for key in wanted):
        return
    moved = _in_phase(server, transaction, statement + 1, RUN)
    change = _CHANGES[name](dict(zip(KEYS, server.values, strict=True)), keys, transaction, statement)
    if change is None:  # no row is found, or one is in the way: nothing happens
        yield moved
        return
    image, rows = change
    held = {key for key, _ in server.hidden[transaction]}
    hidden = [(key, server.values[KEYS.index(key)]) for key in wanted if key not in held]
    yield moved._replace(
        values=tuple(rows[key] for key in KEYS),
        hidden=_with(server.hidden, transaction, (*server.hidden[transaction], *hidden)),
        images=_with(server.images, transaction, (*server.images[transaction], image)),
    )


Rows = dict[int, str | None]
Change = tuple[Operation, Rows] | None


def _put(rows: Rows, keys: list[int], transaction: int, statement: int) -> Change:
    (key,) = keys
    image: Operation = ("insert", key) if rows[key] is None else ("update", key, key)
    return image, rows | {key: f"t{transaction}.{statement}"}


def _delete(rows: Rows, keys: list[int], _transaction: int, _statement: int) -> Change:
    (key,) = keys
    return None if rows[key] is None else (("delete", key), rows | {key: None})


def _move(rows: Rows, keys: list[int], _transaction: int, _statement: int) -> Change:
    old, new = keys
    if rows[old] is None or rows[new] is not None:
        return None
    return ("update", old, new), rows | {old: None, new: f"{rows[old]}m"}


def _truncate(_rows: Rows, _keys: list[int], _transaction: int, _statement: int) -> Change:
    return ("truncate",), dict.fromkeys(KEYS)


_CHANGES = {"put": _put, "delete": _delete, "move": _move, "truncate": _truncate}


def _ended(server: Server, transaction: int, end: str, is_buffered: bool) -> Server:
    statement, _ = server.phases[transaction]
    hidden = dict(server.hidden[transaction])
    if end == "R":
        back = tuple(hidden.get(k, v) for k, v in zip(KEYS, server.values, strict=True))
        done = _in_phase(server._replace(values=back), transaction, statement, DONE)
        return _without_locks(done, transaction)
    if not server.images[transaction]:  # what has changed nothing is not in the log
        return _in_phase(server, transaction, statement, DONE)
    effects = tuple((key, server.values[KEYS.index(key)]) for key in hidden)
    commit = Commit(transaction, server.images[transaction], effects, server.second)
    logged = server._replace(log=(*server.log, commit))
    return _in_phase(logged, transaction, statement, RELEASE if is_buffered else FLUSH)


def _in_phase(server: Server, transaction: int, statement: int, phase: str) -> Server:
    return server._replace(phases=_with(server.phases, transaction, (statement, phase)))


def _without_locks(server: Server, transaction: int) -> Server:
    return server._replace(hidden=_with(server.hidden, transaction, ()))


def _with(values: tuple, place: int, value: object) -> tuple:
    return (*values[:place], value, *values[place + 1 :])


def marked(server: Server, is_buffered: bool) -> Server:
    """Return the server once a transaction that changes no table has committed."""
    log = (*server.log, Commit(MARKER, (), (), server.second))
    return server._replace(log=log, flushed=server.flushed if is_buffered else len(log))


# what transactions do, in every combination

_ONE = [
    (("put", 1),),
    (("delete", 1),),
    (("put", 2),),
    (("move", 1, 2),),
    (("move", 2, 1),),
]
_TWO = [
    (("put", 1), ("put", 2)),
    (("delete", 1), ("put", 1)),
    (("put", 2), ("delete", 2)),
]
PROGRAMS: list[Program] = [(operations, end) for operations in (*_ONE, *_TWO) for end in "CR"]
TRUNCATES: list[Program] = [((("truncate",),), end) for end in "CR"]
STARTS: list[Values] = [("a", None), ("a", "b"), (None, None)]

SetUp = tuple[tuple[Program, Program], Values]
EVERY_SET_UP: list[SetUp] = list(itertools.product(itertools.product(PROGRAMS, PROGRAMS), STARTS))
WITH_A_TRUNCATE: list[SetUp] = list(
    itertools.product(itertools.product(TRUNCATES, [*PROGRAMS, *TRUNCATES]), STARTS)
)
