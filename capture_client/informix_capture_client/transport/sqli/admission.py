"""Open a database on a server: connect, log in, negotiate features, answer PAM, open.

Rule: the password is sent only to a requested server, or to one to which it redirects, with the same
encryption; never in clear text to a remote host after a redirection from a local tunnel.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, replace

from informix_capture_client.errors import AccessRefused, BadOption
from informix_capture_client.locales import codec_of
from informix_capture_client.transport.base import (
    NO_ENCRYPTION,
    TRUSTED,
    ConnectionSettings,
    addresses,
)
from informix_capture_client.transport.error_texts import isam_text_of, state_of, text_of
from informix_capture_client.transport.errors import Diagnostic, OdbcFailure
from informix_capture_client.transport.keywords import refuse_nul
from informix_capture_client.transport.sqli import requests
from informix_capture_client.transport.sqli.answers import AnswerReader, SqliAnswer, SqliError
from informix_capture_client.transport.sqli.challenge import PamConversation, ready, response
from informix_capture_client.transport.sqli.login import (
    Accepted,
    Login,
    LoginRefused,
    Redirect,
    read_login_answer,
)
from informix_capture_client.transport.sqli.messages import Message, name_of
from informix_capture_client.transport.sqli.protocols import Features, features, offer
from informix_capture_client.transport.sqli.trace import HIDDEN, ConnectionTrace, WireTrace
from informix_capture_client.transport.sqli.wire import BROKEN, SILENT, Wire

_MOST_HOPS = 3
# A host of a list that took so long without an answer is asked last for a while, by all connections of
# this process. One that refuses at once costs nothing: it keeps its place, for it may be back soon.
_COSTLY_SECONDS, _ASKED_LAST_SECONDS = 1.0, 60.0
_asked_last_until: dict[tuple[str, int], float] = {}
_UNREACHABLE = {-908, BROKEN.native, SILENT.native}
# what IBM's driver tells a server of its environment, and its values
_ENVIRONMENT = {
    "DBPATH": ".",
    "CLNT_PAM_CAPABLE": "1",
    "DBDATE": "Y4MD-",
    "IFX_UPDDESC": "1",
    "NODEFDAC": "no",
    # off by default, and without it no quoted name is captured
    "DELIMIDENT": "y",
}


@dataclass(frozen=True, slots=True)
class Admission:
    """An open database on a server."""

    wire: Wire
    reader: AnswerReader
    version: str


def codec_of_database(settings: ConnectionSettings) -> str:
    """Return the code set of the connection: the database's, because servers do not convert.

    IBM's driver decodes by DB_LOCALE too; without it, by the client's locale. For an unknown code set
    only the characters common to all code sets are decoded.
    """
    try:
        return codec_of(settings.db_locale or settings.client_locale)
    except BadOption:
        return "ascii"


def in_code_set(text: str, codec: str, errors: str = "strict") -> bytes:
    """Encode a text in the database's code set.

    Args:
        text: the text.
        codec: of the database's code set.
        errors: "surrogateescape" to send back undecodable bytes unchanged.

    Raises:
        BadOption: the code set lacks a character, so no name in the database has it.
    """
    try:
        return text.encode(codec, errors)
    except UnicodeEncodeError as reason:
        raise BadOption(
            f"The database's code set ({codec}) has no character U+{ord(text[reason.start]):04X}.",
            "Check the names of database, tables and columns, and option dbLocale if it is set.",
        ) from None


def admit(settings: ConnectionSettings, trace: WireTrace | None) -> Admission:
    """Try the hosts in order, recently silent ones last; the first that answers decides.

    Raises:
        OdbcFailure: no host answers, or one refuses the login.
        AccessRefused, BadOption, ProtocolViolation: errors without an ODBC equivalent.
    """
    silent: list[Diagnostic] = []
    for address in _in_turn(settings):
        begun = time.monotonic()
        try:
            return _Attempt(settings, trace).admitted(address)
        except OdbcFailure as reason:
            if not any(each.native in _UNREACHABLE for each in reason.diagnostics):
                raise
            if (now := time.monotonic()) - begun >= _COSTLY_SECONDS:
                _asked_last_until[address] = now + _ASKED_LAST_SECONDS
            silent += [_at(address, each) for each in reason.diagnostics]
    raise OdbcFailure(silent)


def _in_turn(settings: ConnectionSettings) -> list[tuple[str, int]]:
    now = time.monotonic()
    listed = addresses(settings.host, settings.port)
    return sorted(listed, key=lambda address: now < _asked_last_until.get(address, 0.0))


def _at(address: tuple[str, int], said: Diagnostic) -> Diagnostic:
    place = f"{address[0]}:{address[1]}"
    text = said.text if place in said.text else f"{place}: {said.text}"
    return replace(said, text=text)


def refusal(code: int, isam_code: int, argument: str = "") -> OdbcFailure:
    """Return a server's error in the form of a driver's failure."""
    reasons = [Diagnostic(state_of(code), code, text_of(code, argument), argument)]
    if isam_code:
        reasons.append(Diagnostic(state_of(isam_code), isam_code, isam_text_of(isam_code), ""))
    return OdbcFailure(reasons)


class _Attempt:
    """A login attempt, which may be redirected to other hosts."""

    def __init__(self, settings: ConnectionSettings, trace: WireTrace | None) -> None:
        self._settings = settings
        self._trace = trace
        self._codec = codec_of_database(settings)
        self._password = "" if settings.authentication == TRUSTED else settings.password

    def admitted(self, address: tuple[str, int]) -> Admission:
        """Log in, following redirections, and open the database."""
        starts_here = False
        server = self._settings.server
        not_after = time.monotonic() + self._settings.login_timeout_seconds
        for hop in range(_MOST_HOPS + 1):
            wire = Wire(address, self._settings, self._next_trace(), not_after)
            try:
                starts_here = wire.is_loopback if hop == 0 else starts_here
                self._refuse_exposure(address, wire, starts_here=starts_here)
                answer = self._log_in(wire, server)
                if isinstance(answer, Accepted):
                    return self._set_up(wire, answer)
                self._refuse(address, answer)
            except AccessRefused as reason:
                wire.hang_up()
                raise _named(reason, address) from None
            except BaseException:
                wire.hang_up()
                raise
            wire.hang_up()
            if isinstance(answer, Redirect):
                address, server = (answer.host, answer.port), answer.server or server
        raise AccessRefused(
            f"The server at {self._settings.address} redirects the login again and again.",
            "Set option host to the host of the database.",
        )

    def _next_trace(self) -> ConnectionTrace | None:
        return self._trace.connection(self._password, [self._codec]) if self._trace else None

    def _refuse_exposure(self, address: tuple[str, int], wire: Wire, *, starts_here: bool) -> None:
        """Reject a redirection that would send the password in clear text from a tunnel's end."""
        is_plain = self._settings.encryption == NO_ENCRYPTION and bool(self._password)
        if is_plain and starts_here and not wire.is_loopback:
            raise AccessRefused(
                f"The server behind {self._settings.address} redirects the login to {address[0]}, where"
                " the password would be sent in clear text.",
                "Set encryption=tls, or set option host to that host if you trust it.",
            )

    def _refuse(self, address: tuple[str, int], answer: LoginRefused | Redirect) -> None:
        if isinstance(answer, Redirect):
            return
        number = answer.system_error
        system = f"the server's system reports error {number}: {os.strerror(number)}" if number else ""
        if not answer.service_error:
            raise self._unexplained(address, system)
        failure = refusal(answer.service_error, 0)
        if system:
            raise OdbcFailure([*failure.diagnostics, Diagnostic("IX000", 0, system, "")])
        raise failure

    def _unexplained(self, address: tuple[str, int], system: str) -> AccessRefused:
        """Return the error for a refusal with service error 0, as sent by a live 14.10.13.10."""
        settings = self._settings
        return AccessRefused(
            f"{settings.server} at {address[0]}:{address[1]} refused user {settings.user}"
            f" without an error number{system and '; ' + system}.",
            f"Check user and password, and that {settings.server} is the server's DBSERVERNAME or an"
            " alias. If they are correct, it may have too many connections (-25571): its online.log has"
            " the reason.",
        )

    def _log_in(self, wire: Wire, server: str) -> Accepted | LoginRefused | Redirect:
        login = self._login(server, self._password)
        shown = self._login(server, HIDDEN.decode() if self._password else "")
        wire.send_alone(login.packet(), shown.packet(), "login")
        return read_login_answer(wire.incoming)

    def _login(self, server: str, password: str) -> Login:
        settings = self._settings
        locales = {"CLIENT_LOCALE": settings.db_locale or settings.client_locale}
        if settings.db_locale:
            locales["DB_LOCALE"] = settings.db_locale
        environment = sorted((locales | _ENVIRONMENT).items())
        return Login(
            user=self._encoded("UID", settings.user),
            password=self._encoded("PWD", password),
            server=self._encoded("SERVER", server),
            environment=tuple((name.encode(), self._encoded(name, v)) for name, v in environment),
            process_id=os.getpid(),
            thread_id=1,
            host=socket.gethostname().encode("utf-8", "replace"),
            folder=b"/",  # the server need not know where this process runs
            program=b"informix-cdc",
        )

    def _encoded(self, key: str, text: str) -> bytes:
        """Encode a text of the login: in UTF-8 for every database, as over ODBC (decision 0024)."""
        refuse_nul(key, text)
        try:
            return text.encode()
        except UnicodeEncodeError:  # of bytes of the environment that are not UTF-8
            raise BadOption(
                f"The connection attribute {key} is not valid UTF-8.", "Write it in UTF-8."
            ) from None

    def _database(self) -> bytes:
        refuse_nul("DATABASE", self._settings.database)
        return in_code_set(self._settings.database, self._codec)

    def _set_up(self, wire: Wire, accepted: Accepted) -> Admission:
        agreed = self._agree(wire)
        if agreed.has_challenge:
            self._converse(wire)
        reader = AnswerReader(wire.incoming, agreed)
        wire.send(requests.information())
        require(reader.read(), self._codec)
        if self._settings.database:  # else statements that need none, such as CREATE DATABASE
            wire.send(requests.open_database(self._database()))
            require(reader.read(), self._codec)
        wire.end_login()
        return Admission(wire, reader, accepted.version)

    def _agree(self, wire: Wire) -> Features:
        wire.send([offer()])
        incoming = wire.incoming
        number = incoming.u16()
        if number != Message.SQ_PROTOCOLS:
            incoming.refuse(f"message {number} instead of its protocol features")
        answer = incoming.padded()
        incoming.trace_message(name_of(number))
        if (following := incoming.u16()) != Message.SQ_EOT:
            incoming.refuse(f"message {following} after its protocol features")
        incoming.trace_message(name_of(following))
        return features(answer)

    def _converse(self, wire: Wire) -> None:
        conversation = PamConversation(self._encoded("PWD", self._password))
        wire.send([ready()])
        while isinstance(answer := conversation.answer(wire.incoming), bytes):
            end = Message.SQ_EOT.to_bytes(2)
            wire.send_alone(response(answer) + end, response(HIDDEN) + end)
        if isinstance(answer, SqliError):
            raise refusal(answer.code, answer.isam_code)


def require(answer: SqliAnswer, codec: str) -> SqliAnswer:
    """Return a response, or raise its error.

    Raises:
        OdbcFailure: it has an error.
    """
    if answer.error is None:
        return answer
    argument = answer.error.argument.rstrip(b"\0").decode(codec, "replace")
    raise refusal(answer.error.code, answer.error.isam_code, argument)


def _named(reason: AccessRefused, address: tuple[str, int]) -> AccessRefused:
    """Return the error with the host's address added."""
    place = f"{address[0]}:{address[1]}"
    if place in reason.message:
        return reason
    return AccessRefused(f"{place}: {reason.message}", reason.remedy, is_temporary=reason.is_temporary)
