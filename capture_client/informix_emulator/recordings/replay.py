"""A server that replays a recording, and answers nothing else.

No answer is invented. The same question gets the recorded answers in their order, then the last one
again. A question that was not recorded, and a read after the last one, get an error. Each connection
starts from the beginning, so that any number of clients see the same answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..answers import (
    CheckStatement,
    Prepared,
    ResultColumn,
    SqlSession,
    SqlValue,
    StatementOutcome,
    StatementType,
)
from ..column_types.column_list import TypeText
from ..column_types.encoding import EmulatedType, column_type
from ..column_types.locales import codec_of
from ..connection import MIN_READ_BYTES
from ..sql_errors import SqlError, sql_error
from ..sqli import Greeting
from .reader import Question, Recording, one_line

RecordedRow = Sequence[str | None]
_LONGEST_VARCHAR = 255
_NUMBERS = (2, 52)  # INTEGER, BIGINT


def recorded_columns(
    rows: Sequence[RecordedRow], codec: str, *, is_function: bool
) -> list[ResultColumn]:
    """Return columns that hold all recorded rows; a function's answer is a number if it always is."""
    if not rows:
        return [ResultColumn("x", varchar(_LONGEST_VARCHAR, codec))]
    columns = [[row[place] for row in rows] for place in range(len(rows[0]))]
    return [
        ResultColumn(f"column{number}", _type(values, codec, is_function))
        for number, values in enumerate(columns, 1)
    ]


def typed(rows: Sequence[RecordedRow], columns: Sequence[ResultColumn]) -> Iterator[list[SqlValue]]:
    """Yield rows in the types of their columns."""
    are_numbers = [column.type.coltype in _NUMBERS for column in columns]
    for row in rows:
        yield [
            int(value) if is_number and value is not None else value
            for value, is_number in zip(row, are_numbers, strict=True)
        ]


def varchar(size: int, codec: str) -> EmulatedType:
    """Return a type that holds so many bytes of text."""
    name = "varchar" if size <= _LONGEST_VARCHAR else "lvarchar"
    return column_type(TypeText(name, (size,)), codec)


def _type(values: Sequence[str | None], codec: str, is_function: bool) -> EmulatedType:
    given = [value for value in values if value is not None]
    if is_function and given and all(value.lstrip("-").isdigit() for value in given):
        largest = max(abs(int(value)) for value in given)
        return column_type(TypeText("integer" if largest < 1 << 31 else "bigint"), codec)
    longest = max((len(value.encode(codec, "replace")) for value in given), default=0)
    return varchar(max(longest, _LONGEST_VARCHAR), codec)


_USUAL_PROPERTIES = 0x15
_LONGEST_ARGUMENT = 2048
# The one code whose text is its argument (finderr; RAISE EXCEPTION -746): what we say arrives as it is.
_NOT_RECORDED = -746


class ReplayedServer:
    """A recorded server; any user and any password will do, none was recorded."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.name = recording.server_name

    def connect(self, attributes: Mapping[str, str]) -> ReplayedConnection:
        """Admit a client; SqlError if it asks for another server."""
        if attributes.get("SERVER") not in (self.name, ""):
            raise sql_error(-761)
        return ReplayedConnection(self.recording, attributes.get("DB_LOCALE", ""))

    def greeting(self) -> Greeting:
        """Return how a client is received: as by the server that was recorded."""
        return Greeting(self.name, str(self.recording.header["server"].get("version", "")))


class ReplayedConnection:
    """One client's way through the recording."""

    def __init__(self, recording: Recording, db_locale: str) -> None:
        self._recording = recording
        self._database = ""
        self.codec = _codec(db_locale)
        self._asked: Counter[Question] = Counter()
        self._reads: Counter[str] = Counter()
        self._rest: dict[str, bytes] = {}

    def open_database(self, name: str) -> int:
        """Open a database that the recording knows; its properties are those of a logged one."""
        if name.lower() not in self._recording.databases:
            raise _unknown(f"a connection to database {name!r}")
        self._database = name.lower()
        return _USUAL_PROPERTIES

    def close_database(self) -> None:
        """Close the database."""
        self._database = ""

    def session(self) -> SqlSession:
        """Return the statements' side of the open database."""
        if not self._database:
            raise sql_error(-349)
        return self

    def database_names(self) -> list[str]:
        """Return the names of the databases that the recording knows."""
        return sorted(self._recording.databases)

    def prepare(self, text: str) -> Prepared:
        """Describe a statement that was recorded, by what it was answered then."""
        line = one_line(text)
        recorded = [
            (question, answers)
            for question, answers in self._recording.answers.items()
            if question[:2] == (self._database, line)
        ]
        if not recorded:
            raise _unknown(f"{line!r} in database {self._database!r}")
        rows = [
            row
            for _, answers in recorded
            for answer in answers
            if not isinstance(answer, SqlError)
            for row in answer
        ]
        is_function = line.lower().startswith("execute")
        columns = recorded_columns(rows, self.codec, is_function=is_function)
        arguments = [varchar(_LONGEST_ARGUMENT, self.codec)] * max(len(q[2]) for q, _ in recorded)

        def run(values: Sequence[SqlValue], _check: CheckStatement) -> StatementOutcome:
            given = tuple("" if value is None else str(value) for value in values)
            return StatementOutcome(typed(self._answer((self._database, line, given)), columns))

        kind = StatementType.EXECUTE if is_function else StatementType.SELECT
        return Prepared(kind, arguments, columns, run)

    def routine(self, signature: str) -> tuple[str, int]:
        """Refuse: a recording has no calls by the fast path."""
        raise sql_error(-674, signature)

    def call_routine(self, number: int, values: Sequence[bytes | None]) -> list[tuple[int, bytes]]:
        """Refuse likewise."""
        raise sql_error(-674, number)

    def lo_read(
        self, descriptor: int, max_bytes: int, check: CheckStatement, offset: int | None = None
    ) -> bytes:
        """Return what the next read of a session returned then."""
        sessions = [name for name in self._recording.reads if int(name) & 0xFFFF == descriptor]
        return self._read_of(sessions[0] if sessions else str(descriptor), max_bytes)

    def begin(self) -> None:
        """Do nothing: clients do not change a recording."""

    commit = rollback = close = begin

    def savepoint(self, name: str, *, is_unique: bool = False) -> None:
        """Do nothing."""

    def rollback_to(self, name: str) -> None:
        """Do nothing."""

    def release(self, name: str) -> None:
        """Do nothing."""

    def _answer(self, question: Question) -> Sequence[RecordedRow]:
        """Return the recorded answer to a question; after the last one, the last one again."""
        answers = self._recording.answers.get(question)
        if answers is None:
            database, text, arguments = question
            raise _unknown(f"{text!r} with {list(arguments)} in database {database!r}")
        answer = answers[min(self._asked[question], len(answers) - 1)]
        self._asked[question] += 1
        if isinstance(answer, SqlError):
            raise answer
        return answer

    def _read_of(self, session: str, room: int) -> bytes:
        if room < MIN_READ_BYTES:
            raise sql_error(-9810)
        recorded = self._rest.pop(session, None)
        if recorded is None:
            recorded = self._next_read(session)
        if len(recorded) > room:  # a record that does not fit is cut, and continues in the next read
            self._rest[session] = recorded[room:]
        return recorded[:room]

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


def _codec(locale: str) -> str:
    try:
        return codec_of(locale)
    except ValueError:
        return "utf-8"


def _unknown(what: str) -> SqlError:
    message = f"This is not in the recording: {what}."
    return SqlError("IX000", _NOT_RECORDED, f"[Informix emulator]{message}", message)
