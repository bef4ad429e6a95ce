"""An Informix server with change data capture, for people who have none and for tests.

Rule: nothing else of this project is imported here. The server speaks the protocol of
docs/emulator-protocol.md and answers as the CDC guide says a real one does.
"""

from __future__ import annotations

from .late_release import LateRelease
from .listening import ListeningServer, ServerSocket, serve
from .locks import LockWait, LockWaits
from .logical_log import LongTransactionError
from .packed_rows import pack_rows
from .recording_reader import BadRecording, Recording, read_recording
from .replay import ReplayedServer
from .server import EmulatedServer
from .sql import keep_rows, load_rows
from .transactions import EmulatedTransaction, Savepoint

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
