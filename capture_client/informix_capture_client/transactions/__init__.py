"""Assemble interleaved records into whole transactions, in commit order.

Rule: no I/O. Open transactions are buffered only here, and all positions are formed here.

An example: a stream resumed at {commit 20, restart 12} with transaction 8 unseen, in two blocks:

    block  number  id  record
    1          12   1  BEGINTX
               13   9  INSERT    headless: 9 began below `restart`
               14   8  INSERT    headless as well, and unseen: it is skipped
               20   9  COMMTX    not above `commit`, so 9 was delivered before the resume
               21   2  BEGINTX
               22   2  INSERT
               23   1  INSERT
               24   2  COMMTX    -> row 22, {24, 12}: 1 is open, and it began at 12
               25   3  BEGINTX
               26   3  INSERT    the run ends; the records of 1 and 3 are buffered
    2          27   1  INSERT
               27   1  DISCARD   undoes row 27; a span with a DISCARD is long
               28   8  COMMTX    8 is no longer unseen; its COMMTX still advances `commit`
               29   3  RBTX      3 is dropped; nothing is yielded, since the next pair is newer
               30   1  COMMTX    -> row 23, {30, 30}: nothing is open, a session may start here
               31   -  TIMEOUT   -> {30, 31}: the log has advanced

Glossary:

    pair         {commit, restart}: commits up to `commit` are delivered; a new session must start at
                 `restart`. A pair is formed at every COMMTX, RBTX and TIMEOUT
    start offset the first pair of a stream; nothing is delivered before it
    unseen       a transaction older than the stream. It has no BEGINTX and may be incomplete, so
                 it is skipped; its id is part of every position until it ends or the id is reused
    headless     a transaction whose BEGINTX is not in this session: unseen, delivered before a
                 resume, or (if it commits above `commit`) lost, which is an error
    block        records that were read together, as columns; a *place* is the index of a record
    run          records of a block that are assembled together: up to a record without transaction
                 (TABSCHEMA, TIMEOUT, ERROR), or to where `unseen` or the start offset changes
    span         the records of one transaction within a run. Its *end* is a COMMTX or RBTX
    whole span   from BEGINTX to end, without DISCARD: assembled by array operations, never an object
    short        a transaction with few records. While it is open, its records are buffered in one table
                 with those of others; they are prepended to the run that contains its end, where its
                 span is whole
    long         a transaction that is tracked individually, as an object: with many records, or a
                 DISCARD, or abandoned
    tail         buffered records of a long transaction
    long span    a span that is neither whole nor buffered: of a long transaction, or headless
    abandoned    open, until a BEGINTX reuses its id (a slot of the server): dropped and counted
    loose        a long transaction with rows that share a block with other transactions; *settled* rows
                 are in a separate block
    spilled      rows of long transactions beyond the memory limit: in a store, as bytes, in
                 *portions*
    piece        some records of one long transaction, or of several short ones: `BlockRecords` (by
                 places in a block) or `SpilledRecords` (in a portion)
"""

from __future__ import annotations

from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.counters import AssemblyCounters, PreviousRows, StreamCounters
from informix_capture_client.transactions.events import (
    CommittedTransactions,
    PositionPassed,
    StreamEvent,
)
from informix_capture_client.transactions.last_numbers import NEVER, LastNumbers, ends_of
from informix_capture_client.transactions.pieces import BlockRecords, Piece
from informix_capture_client.transactions.replay import other_log, replay_failed
from informix_capture_client.transactions.spilling import MemoryLimit

__all__ = [
    "NEVER",
    "AssemblyCounters",
    "BlockRecords",
    "CommittedTransactions",
    "LastNumbers",
    "MemoryLimit",
    "Piece",
    "PositionPassed",
    "PreviousRows",
    "StreamCounters",
    "StreamEvent",
    "TransactionAssembler",
    "ends_of",
    "other_log",
    "replay_failed",
]
