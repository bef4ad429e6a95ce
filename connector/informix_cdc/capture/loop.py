"""The capture loop: from the server's log into the spool. Read this first.

Rule: data flows down through this one loop; steps never call each other. It knows no Spark and can
run in any process.

    1  bytes          session/read_ahead.py         lo_read, in a thread of its own
    2  records        records/framing.py            cut, length-checked; a cut record waits for its rest
                      records/records.py            a block of records as columns of numbers
    3  transactions   transactions/assembler.py     whole ones, in commit order, with their positions
                      stream/event_stream.py        joins 1 to 3: `stream.next`
    4  Arrow          shapes/encoder.py             rows of the chosen form
                      values/table_decoder.py       columns, compiled once per table
    5  segment        spool/spool.py                a file, then the manifest: the commit point
                      capture/pending.py            joins 4 and 5: `pending.take`

What a `stream.next` answers is a value: `Starting` (no session yet), `Silence` (no bytes in time), or
`Read`, the events of the latest bytes. The guard ends a capture that does not move, the state tells
Spark's threads.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event as StopFlag

from informix_capture_client.shapes import ChangeEncoder
from informix_capture_client.stream import ChangeStream
from informix_cdc.capture.guard import Guard, Unguarded
from informix_cdc.capture.pending import Pending
from informix_cdc.capture.state import CaptureState
from informix_cdc.snapshots import Snapshots
from informix_cdc.table_changes import Absent


def capture(
    stream: ChangeStream,
    encoder: ChangeEncoder,
    pending: Pending,
    state: CaptureState,
    stop: StopFlag,
    guard: Guard = Unguarded(),  # noqa: B008 - it has no state
    joining: Absent | None = None,
    snapshots: Snapshots | None = None,
    has_found: Callable[[], bool] = lambda: False,
) -> None:
    """Move committed transactions from the server into the spool until told to stop.

    With `joining` it ends as well when these tables may come in: a session over all of them goes on.
    `snapshots` are read beside it, and let into the stream here alone. It ends as well once
    `has_found` tells of other tables.

    Raises:
        InformixCdcError: the stream cannot go on; whatever is whole is in the spool.
    """
    while not stop.is_set() and not has_found():
        if pending.is_far_ahead(state):
            pending.wait_for_room(state)
            _excuse(guard, snapshots)
            continue
        with pending.kept_on_error(encoder):  # what is whole does not wait for what is broken
            with guard.listening():
                answer = stream.next(pending.patience_seconds())  # bytes -> records -> transactions
                guard.hear(answer)
            answer = state.restart_bound.bounded(answer, state.clock())
            if joining is not None:
                answer = joining.upto(answer)
            has_more = joining is not None and joining.has_all  # which another session shows
            catches_up = not has_more and state.catches_up(answer)
            at_once = catches_up or (joining is not None and joining.is_near)
            asked_for = encoder.objects_asked_for
            if pending.take(answer, encoder, at_once=at_once):  # transactions -> Arrow -> spool
                state.notify()
            _excuse_reading(encoder, asked_for, guard, snapshots)
            if snapshots is not None and snapshots.hear(answer, state.spool):
                pending.flush(encoder)  # whatever a chunk is behind comes first
                snapshots.emit(state.spool, encoder)
                state.notify()
                _excuse_reading(encoder, asked_for, guard, snapshots)
        state.note(answer, catches_up)
        if pending.is_anchor_overdue() and (snapshots is None or snapshots.may_leave_out_older(answer)):
            stream.stop_waiting_for_unseen()
        guard.judge(pending.mark)
        if joining is not None and joining.is_over(answer):
            return


def _excuse_reading(
    encoder: ChangeEncoder, asked_for: int, guard: Guard, snapshots: Snapshots | None
) -> None:
    """Excuse that large objects were read, if more have been asked for than had been."""
    if encoder.objects_asked_for > asked_for:
        _excuse(guard, snapshots)


def _excuse(guard: Guard, snapshots: Snapshots | None) -> None:
    """Nobody has listened to the session: what was silent, or has not passed, may be so by that."""
    guard.excuse()
    if snapshots is not None:
        snapshots.excuse()
