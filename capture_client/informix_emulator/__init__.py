"""An emulated Informix server with change data capture, for tests and for people without a server.

Rule: it imports nothing else of this project. It speaks the protocol of docs/emulator-protocol.md and
follows the CDC guide. It knows the SQL that the product, its tests and the clients of docs/witnesses.md
send, and refuses all other: what nobody sends is not kept here.
"""

from __future__ import annotations

from .listening import ListeningServer, ServerSocket, serve
from .locks import LockWait, LockWaits
from .log.late_release import LateRelease
from .log.logical_log import LongTransactionError
from .log.transactions import EmulatedTransaction, Savepoint
from .packed_rows import pack_rows
from .recordings.reader import BadRecording, Recording, read_recording
from .recordings.replay import ReplayedServer
from .server import EmulatedServer
from .sql import keep_rows, load_rows

__all__ = [
    "BadRecording",
    "EmulatedServer",
    "EmulatedTransaction",
    "LateRelease",
    "ListeningServer",
    "LockWait",
    "LockWaits",
    "LongTransactionError",
    "Recording",
    "ReplayedServer",
    "Savepoint",
    "ServerSocket",
    "keep_rows",
    "load_rows",
    "pack_rows",
    "read_recording",
    "serve",
]
