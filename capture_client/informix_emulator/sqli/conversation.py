"""One client's conversation after its login: requests in, answers out.

The messages of a request run in order until one fails; the others are skipped, and the client gets the
error. Sockets and clocks are not known here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import count

from ..answers import Admitted, CheckStatement, SqlSession, StatementOutcome
from ..log.logical_log import LongTransactionError
from ..sql_errors import SqlError, sql_error
from . import replies
from .dialect import MessageLayout, agree, answer_of
from .login import Greeting
from .pam import PamDialogue
from .reading import Malformed
from .requests import ClientMessage, Code
from .statements import Statement

logger = logging.getLogger("informix_cdc.emulator.sqli")  # a name in logs, not a module
Admit = Callable[[str | None], Admitted]  # lets the client in, with a password in place of the login's
_BEGUN, _COMMITTED, _ROLLED_BACK = 1, 2, 3


class Conversation:
    """The state of one connection: what was agreed on, the open database, statements.

    Args:
        greeting: how the server receives its clients.
        admit: admits the client; called at once, or when PAM knows its password.
        check: called while a statement waits; raises to end it.
    """

    def __init__(self, greeting: Greeting, admit: Admit, check: CheckStatement) -> None:
        self.dialect = MessageLayout()
        self.is_over = False
        self._greeting = greeting
        self._check = check
        self._pam = PamDialogue(greeting.prompts, admit)
        self._admitted = None if greeting.prompts else admit(None)
        self._statements: dict[int, Statement] = {}
        self._current: Statement | None = None
        self._routine: int | None = None  # that is called with what is bound next

    def respond(self, request: Sequence[ClientMessage]) -> bytes:
        """Answer one request."""
        self._routine = None
        parts: list[bytes] = []
        for message in request:
            try:
                parts += _HANDLERS[message.code](self, message)
            except SqlError as error:
                parts.append(self._failure(error))
                break
            except LongTransactionError:
                parts.append(self._failure(sql_error(-458)))
                break
            except (EOFError, OSError, Malformed):
                raise
            except Exception as error:  # noqa: BLE001 - ends the request, not the connection
                logger.warning("request_failed message=%s error=%r", message.code.name, error)
                parts.append(self._failure(sql_error(-201)))
                break
        if not self.is_over:
            parts.append(replies.END_OF_TURN)
        return b"".join(parts)

    def end(self) -> None:
        """Release what the client held."""
        if self._admitted is not None:
            self._forget_statements()
            self._admitted.close()
            self._admitted = None

    def _failure(self, error: SqlError) -> bytes:
        return replies.failure(self.dialect, error, self._codec)

    @property
    def _server(self) -> Admitted:
        if self._admitted is None:
            raise sql_error(-1809)
        return self._admitted

    @property
    def _session(self) -> SqlSession:
        return self._server.session()

    @property
    def _codec(self) -> str:
        return self._admitted.codec if self._admitted is not None else "utf-8"

    def _text(self, message: ClientMessage) -> str:
        try:
            return message.text.decode(self._codec).rstrip("\0")
        except UnicodeDecodeError:
            raise sql_error(-202) from None

    @property
    def _statement(self) -> Statement:
        if self._current is None:
            raise sql_error(-410)
        return self._current

    # before the first statement

    def _protocols(self, message: ClientMessage) -> list[bytes]:
        answer = answer_of(self._greeting.protocols, has_pam=bool(self._greeting.prompts))
        self.dialect = agree(message.text, answer)
        return [replies.protocols(answer)]

    def _begin_pam(self, _message: ClientMessage) -> list[bytes]:
        return self._go_on_with_pam()

    def _pam_response(self, message: ClientMessage) -> list[bytes]:
        self._pam.take(message.text.decode(errors="replace").rstrip("\0"))
        return self._go_on_with_pam()

    def _go_on_with_pam(self) -> list[bytes]:
        prompts = self._pam.next_prompts()
        challenges = [replies.challenge(prompt.style, prompt.text) for prompt in prompts]
        if self._pam.is_waiting:
            return [replies.END_OF_TURN.join(challenges)]
        try:
            self._admitted = self._admitted or self._pam.admit()
        except SqlError:
            return self._exit(ClientMessage(Code.EXIT))
        return [replies.END_OF_TURN.join([*challenges, replies.PAM_ACCEPTED])]

    def _info(self, _message: ClientMessage) -> list[bytes]:
        return []  # IBM's driver and nmap's scripts are content with the end of the turn alone

    # databases

    def _open_database(self, message: ClientMessage) -> list[bytes]:
        self._forget_statements()
        warnings = self._server.open_database(self._text(message).strip())
        return [replies.done(self.dialect, StatementOutcome(warnings=warnings)), replies.COST]

    def _close_database(self, _message: ClientMessage) -> list[bytes]:
        self._forget_statements()
        self._server.close_database()
        return [self._done(), replies.COST]

    def _databases(self, _message: ClientMessage) -> list[bytes]:
        return [replies.database_list(self._server.database_names(), self._codec)]

    def _version(self, _message: ClientMessage) -> list[bytes]:
        return [replies.version(self._greeting.version)]

    def _ping(self, _message: ClientMessage) -> list[bytes]:
        return [replies.ping()]

    def _exit(self, _message: ClientMessage) -> list[bytes]:
        self.is_over = True
        return [replies.FAREWELL]

    # statements

    def _prepare(self, message: ClientMessage) -> list[bytes]:
        self._current = None
        prepared = self._session.prepare(self._text(message))
        # From 0, and those of released statements again: informix-driver names no other than 0, and
        # ran so on three live servers.
        number = next(number for number in count() if number not in self._statements)
        self._current = self._statements[number] = Statement(number, prepared, self.dialect)
        return []

    def _choose(self, message: ClientMessage) -> list[bytes]:
        self._current = self._statements.get(message.numbers[0])
        if self._current is None:
            raise sql_error(-410)
        return []

    def _name_cursor(self, message: ClientMessage) -> list[bytes]:
        if self._current is not None:
            self._current.cursor_name = self._text(message)
        return []

    def _describe(self, _message: ClientMessage) -> list[bytes]:
        statement = self._statement
        described = replies.description(self.dialect, statement.number, statement.prepared, self._codec)
        return [described]

    def _describe_input(self, _message: ClientMessage) -> list[bytes]:
        return [replies.input_description(self._statement.prepared.parameters)]

    def _want_done(self, _message: ClientMessage) -> list[bytes]:
        return [self._done(), replies.COST]

    def _nothing(self, _message: ClientMessage) -> list[bytes]:
        return []

    def _find_routine(self, message: ClientMessage) -> list[bytes]:
        return [replies.routine(*self._server.routine(self._text(message)))]

    def _call_routine(self, message: ClientMessage) -> list[bytes]:
        self._routine = message.numbers[0]
        return []

    def _bind(self, message: ClientMessage) -> list[bytes]:
        if self._routine is not None:
            number, self._routine = self._routine, None
            values = [bound.data for bound in message.binds]
            return [replies.routine_result(self._server.call_routine(number, values))]
        self._statement.bind(message.binds)
        return []

    def _bind_objects(self, message: ClientMessage) -> list[bytes]:
        self._statement.bind_objects(message.objects)
        return []

    def _execute(self, _message: ClientMessage) -> list[bytes]:
        """Run a statement; one that answers with rows hands them over at once."""
        statement = self._statement
        outcome = statement.execute(self._codec, self._check)
        if statement.prepared.ends_transaction:
            self._close_cursors()
        rows = list(statement.tuples_of(outcome)) if statement.prepared.columns else []
        serials = []
        if outcome.serial8 or outcome.bigserial:
            serials.append(replies.insert_done(self.dialect, outcome))
        return [*rows, *serials, replies.done(self.dialect, outcome)]

    def _open(self, _message: ClientMessage) -> list[bytes]:
        self._statement.open(self._codec, self._check)
        return []

    def _scroll(self, _message: ClientMessage) -> list[bytes]:
        self._statement.scrolls = True
        return []

    def _hold(self, _message: ClientMessage) -> list[bytes]:
        self._statement.holds = True
        return []

    def _fetch(self, message: ClientMessage) -> list[bytes]:
        rows = self._statement.fetch(*message.numbers)
        if self._statement.has_more:
            # SQ_DONE is the end of the rows to IBM's JDBC driver 15.0.1.0 and to libsqli
            return [*rows, replies.COST]
        return [*rows, replies.done(self.dialect, StatementOutcome(row_count=len(rows))), replies.COST]

    def _scroll_fetch(self, message: ClientMessage) -> list[bytes]:
        how, row, _room = message.numbers
        found = self._statement.fetch_at(how, row)
        if found is None:
            return [self._done()]
        number, row_bytes = found
        last = replies.done(self.dialect, StatementOutcome(row_count=1))
        return [replies.tuple_number(number), row_bytes, last]

    def _fetch_object(self, message: ClientMessage) -> list[bytes]:
        return [replies.simple_object(self._statement.objects.value(message.text))]

    def _close(self, _message: ClientMessage) -> list[bytes]:
        self._statement.close()
        return []

    def _release(self, _message: ClientMessage) -> list[bytes]:
        self._statement.close()
        self._statements.pop(self._statement.number, None)
        self._current = None
        return []

    def _done(self) -> bytes:
        return replies.done(self.dialect, StatementOutcome())

    def _forget_statements(self) -> None:
        for statement in self._statements.values():
            statement.close()
        self._statements.clear()
        self._current = None

    # transactions

    def _begin(self, _message: ClientMessage) -> list[bytes]:
        self._session.begin()
        return [replies.transaction(_BEGUN)]

    def _commit(self, _message: ClientMessage) -> list[bytes]:
        self._session.commit()
        self._close_cursors()
        return [replies.transaction(_COMMITTED), self._done()]

    def _rollback(self, _message: ClientMessage) -> list[bytes]:
        self._session.rollback()
        self._close_cursors()
        return [replies.transaction(_ROLLED_BACK), self._done()]

    def _close_cursors(self) -> None:
        """Close what is not held over the end of a transaction."""
        for statement in self._statements.values():
            if not statement.holds:
                statement.close()

    def _savepoint(self, message: ClientMessage) -> list[bytes]:
        self._session.savepoint(self._text(message), is_unique=bool(message.numbers[0]))
        return [self._done()]

    def _release_savepoint(self, message: ClientMessage) -> list[bytes]:
        self._session.release(self._text(message))
        return [self._done()]

    def _rollback_to(self, message: ClientMessage) -> list[bytes]:
        self._session.rollback_to(self._text(message))
        return [self._done()]

    # capture sessions, and any other smart large object

    def _smart_blob(self, message: ClientMessage) -> list[bytes]:
        what, descriptor, wanted, chunk, *offset = message.numbers
        data = self._server.lo_read(descriptor, wanted, self._check, *offset)
        return [replies.smart_blob(what, data, chunk)]


_HANDLERS: dict[Code, Callable[[Conversation, ClientMessage], list[bytes]]] = {
    Code.COMMAND: Conversation._prepare,
    Code.PREPARE: Conversation._prepare,
    Code.CURSOR_NAME: Conversation._name_cursor,
    Code.STATEMENT: Conversation._choose,
    Code.BIND: Conversation._bind,
    Code.BIND_OBJECTS: Conversation._bind_objects,
    Code.OPEN: Conversation._open,
    Code.EXECUTE: Conversation._execute,
    Code.FETCH: Conversation._fetch,
    Code.CLOSE: Conversation._close,
    Code.RELEASE: Conversation._release,
    Code.COMMIT: Conversation._commit,
    Code.ROLLBACK: Conversation._rollback,
    Code.WANT_DESCRIPTION: Conversation._describe,
    Code.FETCH_OBJECT: Conversation._fetch_object,
    Code.PADDING: Conversation._nothing,
    Code.SCROLL_FETCH: Conversation._scroll_fetch,
    Code.SCROLL: Conversation._scroll,
    Code.DATABASES: Conversation._databases,
    Code.BEGIN: Conversation._begin,
    Code.OPEN_DATABASE: Conversation._open_database,
    Code.CLOSE_DATABASE: Conversation._close_database,
    Code.HOLD: Conversation._hold,
    Code.WANT_DONE: Conversation._want_done,
    Code.VERSION: Conversation._version,
    Code.EXIT: Conversation._exit,
    Code.PING: Conversation._ping,
    Code.SMART_BLOB: Conversation._smart_blob,
    Code.RESULT_TYPES: Conversation._nothing,
    Code.FIND_ROUTINE: Conversation._find_routine,
    Code.CALL_ROUTINE: Conversation._call_routine,
    Code.AUTOFREE: Conversation._nothing,
    Code.INFO: Conversation._info,
    Code.DESCRIBE_INPUT: Conversation._describe_input,
    Code.PROTOCOLS: Conversation._protocols,
    Code.PAM: Conversation._begin_pam,
    Code.PAM_RESPONSE: Conversation._pam_response,
    Code.GENERATED_KEYS: Conversation._nothing,
    Code.SAVEPOINT: Conversation._savepoint,
    Code.RELEASE_SAVEPOINT: Conversation._release_savepoint,
    Code.ROLLBACK_TO: Conversation._rollback_to,
}
