"""A server that replays a recording, and answers nothing else.

Rule: no answer is made up. The same question gets the recorded answers in their order, then the last
one each time; a question that was not recorded, and a read after the last one, are errors that say so.
Each connection begins at the beginning, so that any number of clients see the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from .connection import MIN_READ_BYTES, Answer, Parameter, is_lo_read
from .recording_reader import Question, Recording, one_line
from .result_sets import ResultSet
from .sql_errors import SqlError, sql_error

_NOT_RECORDED = -1  # native code of what a recording cannot answer


class ReplayedServer:
    """A recorded server; any user and any password will do, none was recorded."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.name = recording.server_name

    def connect(self, attributes: Mapping[str, str]) -> ReplayedConnection:
        """Admit a client to a database that the recording knows; SqlError names what is wrong."""
        if attributes.get("SERVER") != self.name:
            raise sql_error(-25596, attributes.get("SERVER"))
        database = attributes.get("DATABASE", "").lower()
        if database not in self.recording.databases:
            raise _unknown(f"a connection to database {database!r}")
        return ReplayedConnection(self.recording, database)


class ReplayedConnection:
    """One client's way through the recording."""

    def __init__(self, recording: Recording, database: str) -> None:
        self._recording = recording
        self._database = database
        self._asked: Counter[Question] = Counter()
        self._reads: Counter[str] = Counter()
        self._rest: dict[str, bytes] = {}

    def execute(
        self, statement: str, parameters: Sequence[Parameter], _check: Callable[[], None]
    ) -> Answer:
        """Return what was answered then."""
        text = one_line(statement)
        if is_lo_read(text):
            return self._read(parameters)
        arguments = tuple(parameter.value or "" for parameter in parameters)
        question = (self._database, text, arguments)
        answers = self._recording.answers.get(question)
        if answers is None:
            raise _unknown(f"{text!r} with {list(arguments)} in database {self._database!r}")
        answer = answers[min(self._asked[question], len(answers) - 1)]
        self._asked[question] += 1
        if isinstance(answer, SqlError):
            raise answer
        names = (
            tuple(f"column{number}" for number in range(1, len(answer[0]) + 1)) if answer else ("x",)
        )
        return Answer(ResultSet(names, list(answer)))

    def close(self) -> None:
        """Do nothing: clients do not change a recording."""

    def _read(self, parameters: Sequence[Parameter]) -> Answer:
        if len(parameters) != 2 or parameters[1].room is None:
            raise sql_error(-11013)
        session, room = parameters[0].value or "", parameters[1].room
        if room < MIN_READ_BYTES:
            raise sql_error(-11071)
        recorded = self._rest.pop(session, None)
        if recorded is None:
            recorded = self._next_read(session)
        if len(recorded) > room:  # a record that does not fit is cut, and goes on in the next read
            self._rest[session] = recorded[room:]
        return Answer(row_count=0, out=recorded[:room])

    def _next_read(self, session: str) -> bytes:
        reads = self._recording.reads.get(session, [])
        number = self._reads[session]
        if number == len(reads):
            raise _unknown(f"read {number + 1} of session {session}: the recording ends here")
        self._reads[session] += 1
        answer = reads[number]
        if isinstance(answer, SqlError):
            raise answer
        return answer


def _unknown(what: str) -> SqlError:
    return SqlError("IX000", _NOT_RECORDED, f"[Informix emulator]This is not in the recording: {what}.")
