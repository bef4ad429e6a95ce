"""Parse and build ODBC connection strings, and identify secret keywords.

Rule: the same parser for options, for connecting, and for removing secrets from messages. A value ends
at a semicolon, unless it is in braces, in which `}}` is a closing brace (ODBC, SQLDriverConnect).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from informix_capture_client.errors import BadOption

# Within a keyword, whatever stands around it: SSL_KEYSTORE_PASSWORD, TPWD, APIKEY, AccessToken; short
# words only where no letter follows (DBPASS), or none stands beside them (SAS_KEY, but not PINGTIME).
_SECRET = (
    r"(?:pwd|passw(?:or)?d|passphrase|secret|token|credential|signature|jwt"
    r"|(?:api|access|private|shared)[ _-]?key"
    r"|(?:pass|pw)(?![a-z])|(?<![a-z])(?:auth|sas|pin|sig)(?![a-z]))"
)
_SECRET_NAME = re.compile(_SECRET, re.IGNORECASE)
# The spans have limits so that no text, however long, takes more than one pass.
SECRET_PAIR = re.compile(
    rf"({_SECRET}\w{{0,40}}\s{{0,9}}=\s{{0,9}})(\{{(?:[^}}]|\}}\}})*\}}?|[^;]*)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword with its value as written, with braces; `repr` hides the value, which may be secret."""

    name: str
    written: str

    @property
    def value(self) -> str:
        """The value without braces."""
        return _unbraced(self.written) if self.written.startswith("{") else self.written

    @property
    def is_secret(self) -> bool:
        """Whether the value is secret, by its name or by a keyword within it."""
        return bool(_SECRET_NAME.search(self.name) or SECRET_PAIR.search(self.value))

    def __repr__(self) -> str:
        return f"Keyword({self.name!r})"


def _unbraced(written: str) -> str:
    return written[1:-1].replace("}}", "}")


def braced_if_needed(value: str) -> str:
    """Return a value in ODBC syntax, in braces if necessary."""
    if ";" in value or value.startswith("{") or value != value.strip():
        return "{" + value.replace("}", "}}") + "}"
    return value


def read_keywords(text: str) -> list[Keyword]:
    """Parse a connection string.

    Raises:
        BadOption: it is not valid; the error does not quote it.
    """
    found, at = [], _after_blanks(text, 0, "; \t\r\n")
    while at < len(text):
        equals = text.find("=", at)
        name = text[at:equals].strip()
        if equals < 0 or not name or ";" in name:
            raise _no_connection_string("has a keyword without a value")
        begin = _after_blanks(text, equals + 1)
        end = _end_of_braces(text, begin) if text[begin : begin + 1] == "{" else _next(text, ";", begin)
        found.append(Keyword(name, text[begin:end].strip()))
        at = _after_blanks(text, end, "; \t\r\n")
    return found


def _end_of_braces(text: str, begin: int) -> int:
    """Return the index after the brace that closes a value."""
    at = begin + 1
    while True:
        close = text.find("}", at)
        if close < 0:
            raise _no_connection_string("has a brace that is not closed")
        if text[close + 1 : close + 2] != "}":
            break
        at = close + 2
    behind = _after_blanks(text, close + 1)
    if text[behind : behind + 1] not in ("", ";"):
        raise _no_connection_string("has text after a value in braces")
    return close + 1


def _next(text: str, sign: str, at: int) -> int:
    found = text.find(sign, at)
    return len(text) if found < 0 else found


def _after_blanks(text: str, at: int, blanks: str = " \t\r\n") -> int:
    while at < len(text) and text[at] in blanks:
        at += 1
    return at


def _no_connection_string(why: str) -> BadOption:
    return BadOption(
        f"option 'connectionString' {why}.",
        "Write KEY=value;KEY=value. Put values with a semicolon in braces, with }} for a brace.",
        option="connectionString",
    )


def refuse_nul(key: str, value: str) -> None:
    """Reject a text with a NUL, which would truncate it."""
    if "\0" in value:
        raise BadOption(f"The connection attribute {key} contains a NUL character.")
