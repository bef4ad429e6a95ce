"""Faults that tests inject into a server: silence, stalls, errors, an unreadable log.

Rule: one method per fault, named for what a client sees. Its docstring names who saw it on a real
server, or says that it is our choice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from .log import codes
from .log.logical_log import LogicalLog, UnreadableEnd
from .log.sessions import EmulatedSession
from .tables.tables import Database, EmulatedTable


class Faults(ABC):
    """The faults of a server, apart from what it is."""

    log: LogicalLog
    databases: dict[str, Database]
    row_logging_refusals: int
    _is_silent: bool
    _sessions: dict[int, EmulatedSession]

    @abstractmethod
    def table(self, name: str) -> EmulatedTable:
        """Return a table."""

    @abstractmethod
    def sessions(self) -> dict[int, EmulatedSession]:
        """Return the open capture sessions by number."""

    def refuse_row_logging_off(self, times: int) -> None:
        """Let the function that clients call fail `times` times to switch full row logging off.

        An open client measured that on Informix 15 just after a session was closed, for some seconds;
        which error it saw is not known: -19816 is our choice.
        """
        self.row_logging_refusals = times

    def kill_session(self, session_id: int) -> None:
        """End a session from outside: its reads return an ERROR record, and it must be closed."""
        self.inject_error_record(session_id, codes.SESSION_IS_DEAD, "CDC_E_INTERRUPT")

    def inject_error_record(self, session_id: int | None, flags: int, code_name: str) -> None:
        """Let a session, or all with None, return an ERROR record."""
        for session in self._chosen(session_id):
            session.fail(flags, codes.error_code(code_name))

    def announce_as(self, session_id: int | None, table: str, columns: str) -> None:
        """Let a session, or all with None, announce a captured table by another column list.

        The guide says that a schema change after the start is not captured; a second TABSCHEMA that
        differs is reported by one vendor's page (oninit) and not confirmed.
        """
        target = self.table(table)
        for session in self._chosen(session_id):
            session.announce_as(target, columns, self.databases[target.name.database].locale)

    def silence(self, on: bool) -> None:
        """Let reads only time out, also when there is data, in every session and in new ones.

        The sequence number of these TIMEOUT records does not change while `syslogs` moves on with what
        is written: the stalled stream that clients report of real servers.
        """
        with self.log.changed:
            self._is_silent = on
            self.log.changed.notify_all()

    def stall_session(self, session_id: int | None) -> None:
        """Let a session, or all that are open with None, only time out from now on.

        A new session reads on: an open client measured such stalls on Informix 15, at a log's end
        whose last page was still being written, and re-opens after 30 seconds.
        """
        with self.log.changed:
            for session in self._chosen(session_id):
                session.is_stalled = True

    def make_log_unreadable(self, *, reads_return: bool = True) -> None:
        """Let sessions that are opened from now on read the current log only up to its present end.

        They get only TIMEOUT records, or reads that do not return, also after the log has moved on to
        the next file. A session that begins in a later file reads that file; `recover` ends the fault.
        An open client measured this on Informix 15.0.1.0.3, after a session had met the end of a log
        whose last page was still being written.
        """
        with self.log.changed:
            file = self.log.current
            file.unreadable = UnreadableEnd(len(file.records), frozenset(self._sessions), reads_return)

    def answer_empty(self, session_id: int | None, reads: int) -> None:
        """Let the next reads of a session, or of all with None, return no bytes, and at once.

        No source says so; a driver that takes an interrupted read for one of 0 bytes looks like it.
        """
        with self.log.changed:
            for session in self._chosen(session_id):
                session.empty_reads = reads

    def _chosen(self, session_id: int | None) -> list[EmulatedSession]:
        sessions = self.sessions()
        return list(sessions.values()) if session_id is None else [sessions[session_id]]
