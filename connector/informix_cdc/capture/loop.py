"""The capture loop: from the server's log into the spool. Read this first.

Rule: data flows down through this one loop; steps never call each other. It does not know Spark and can
run in any process.

    1  bytes          session/read_ahead.py         lo_read, in a separate thread
    2  records        records/framing.py            cut, length-checked; a partial record waits
                      records/records.py            a block of records as numeric columns
    3  transactions   transactions/assembler.py     whole ones, in commit order, with their positions
                      stream/event_stream.py        joins 1 to 3: `stream.next`
    4  Arrow          shapes/encoder.py             rows of the chosen form
                      values/table_decoder.py       columns, compiled once per table
    5  segment        spool/spool.py                a file, then the manifest: the commit point
                      capture/pending.py            joins 4 and 5: `pending.append`

`stream.next` returns a value: `Starting` (no session yet), `Silence` (no bytes in time), or `Read`, the
events of the latest bytes. The guard ends a capture that does not advance; the state notifies Spark's
threads.

Everything else is in a list of companions, in the order in which an answer passes them (`CaptureRun`
creates it; `companions.py` documents when each hook is called):

    restart bound     capture/restart_bound.py      limits the restart position
    joining tables    table_changes/joining.py      tables that this session does not capture yet
    end of the log    capture/end_of_log.py         detects the end that the log had at the start
    snapshots         snapshots/snapshots.py        existing rows, put between changes
    wanted tables     table_changes/                new tables that match a pattern
    requests          capture/requests.py           of `informix-cdc resync`, `verify` and `alter`
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event as StopFlag

from informix_capture_client.shapes import ChangeEncoder
from informix_capture_client.stream import ChangeStream
from informix_cdc.capture.guard import Guard, Unguarded
from informix_cdc.capture.pending import Pending
from informix_cdc.capture.state import CaptureState
from informix_cdc.companions import Companion, Companions


def capture(
    stream: ChangeStream,
    encoder: ChangeEncoder,
    pending: Pending,
    state: CaptureState,
    stop: StopFlag,
    guard: Guard = Unguarded(),  # noqa: B008 - it has no state
    companions: Sequence[Companion] = (),
) -> None:
    """Move committed transactions from the server into the spool until told to stop.

    Also returns when a companion is over, so that a session over other tables can continue.

    Raises:
        InformixCdcError: the stream cannot continue; all complete transactions are in the spool.
    """
    together = Companions(companions)
    while not together.is_over and not stop.is_set():
        if pending.is_far_ahead(state):
            pending.wait_for_room(state)
            guard.reset_deadlines()
            together.reset_deadlines()
            continue
        with pending.stored_on_error(encoder):  # complete transactions are stored before an error
            with guard.watching_read():
                answer = stream.next(pending.patience_seconds())  # bytes -> records -> transactions
                guard.on_read(answer)
            answer = together.on_read(answer, state.clock())
            objects_before = encoder.objects_asked_for  # objects are read while rows are encoded
            if pending.append(answer, encoder, at_once=together.is_urgent):  # -> Arrow -> spool
                state.notify()
            _reset_deadlines(encoder, objects_before, guard, together)
            if together.due(answer, state.spool):
                pending.flush(encoder)  # whatever a chunk is behind comes first
                together.emit(state.spool, encoder)
                state.notify()
                _reset_deadlines(encoder, objects_before, guard, together)
        state.record(answer)
        if pending.is_start_overdue() and together.may_leave_out_older(answer):
            stream.stop_waiting_for_unseen()
        guard.check(pending.high_watermark)
        together.on_stored(answer)


def _reset_deadlines(
    encoder: ChangeEncoder, objects_before: int, guard: Guard, together: Companion
) -> None:
    """Reset the deadlines if large objects were read: the session was not read meanwhile."""
    if encoder.objects_asked_for > objects_before:
        guard.reset_deadlines()
        together.reset_deadlines()
