"""From interleaved records to whole transactions, in commit order.

Rule: pure; what is open waits here and nowhere else, and every pair of positions is formed here.

A worked stream, resumed at {commit 20, restart 12} with transaction 8 unseen, read as two blocks:

    block  number  id  record
    1          12   1  BEGINTX
               13   9  INSERT    headless: 9 began below `restart`
               14   8  INSERT    headless as well, and unseen: it is left out
               20   9  COMMTX    not above `commit`, so 9 was delivered before the resume
               21   2  BEGINTX
               22   2  INSERT
               23   1  INSERT
               24   2  COMMTX    -> row 22, {24, 12}: 1 is open, and it began at 12
               25   3  BEGINTX
               26   3  INSERT    the run ends; the records of 1 and 3 are buffered
    2          27   1  INSERT
               27   1  DISCARD   undoes row 27; a span with a DISCARD is long
               28   8  COMMTX    8 is no longer unseen; its COMMTX moves `commit` all the same
               29   3  RBTX      3 is dropped; nothing is yielded, since the next pair is newer
               30   1  COMMTX    -> row 23, {30, 30}: nothing is open, a session may begin here
               31   -  TIMEOUT   -> {30, 31}: the log has moved on

Glossary, from the stream to its parts:

    pair         {commit, restart}: all up to COMMTX `commit` is delivered, a new session must begin at
                 `restart`. It is formed when its record passes: at every COMMTX, RBTX and TIMEOUT
    start offset the first pair of a stream; before it is found nothing is delivered
    unseen       a transaction older than the stream. It shows no BEGINTX and may be incomplete, so that
                 it is left out; its id is part of every position until it ends or the id is reused
    headless     a transaction whose BEGINTX this session has not shown: unseen, delivered before a
                 resume, or (if it commits above `commit`) lost, which is an error
    block        records that were read together, as columns; each is named by its *place*
    run          records of a block that are assembled at once: up to the next record of no transaction
                 (TABSCHEMA, TIMEOUT, ERROR), or to where `unseen` or the start offset changes
    span         the records of one transaction within a run. Its *end* is a COMMTX or RBTX
    whole span   from BEGINTX to end, without DISCARD: assembled by array operations, never an object
    short        a transaction of few records. While it is open, its records are buffered in one table
                 with those of others; they are put in front of the run that shows its end, where its
                 span is whole
    long         a transaction that is followed by itself, as an object: one of many records, or with a
                 DISCARD, or abandoned
    tail         buffered records of a long transaction
    long span    one that is neither whole nor buffered: of a long transaction, or headless
    abandoned    open, until a BEGINTX reuses its id (a slot of the server): dropped and counted
    loose        of a long transaction: some rows share a block with other transactions; *settled* are
                 those in a block of their own
    spilled      rows of long transactions beyond their limit of memory: in a store, as bytes, in
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
