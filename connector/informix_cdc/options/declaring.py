"""Declare an option, and read its text as a value; the ValueError says what the text must be.

Rule: functions from text to value, used where options are declared (`declared.py`), and the words that
values have.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

from informix_capture_client.errors import BadOption
from informix_capture_client.locales import codec_of
from informix_capture_client.positions import parse
from informix_capture_client.sql_names import read_paths

PASSWORD_VARIABLE = "INFORMIX_CDC_PASSWORD"
LOOPBACK = "127.0.0.1"
AUTO, ODBC, SQLI = "auto", "odbc", "sqli"
NONE, ALL = "none", "all"
ANY_MARKER, TEMP_MARKER, HEARTBEAT_MARKER, NO_MARKER = "auto", "temp", "heartbeat", "none"


def option(
    doc: str,
    read: Callable[[str], Any] = str,
    *,
    default: Any = MISSING,  # noqa: ANN401 - a default is of its option's own type
    name: str = "",
    secret: bool = False,
) -> Any:  # noqa: ANN401 - dataclasses.field is typed the same way
    """Declare an option: its meaning, how its text is read, its default."""
    metadata = {"doc": doc, "read": read, "name": name}
    return field(default=default, metadata=metadata, repr=not secret)


def option_name(declared: Field[Any]) -> str:
    """Return the name under which users set a field."""
    first, *rest = declared.name.split("_")
    return str(declared.metadata["name"]) or first + "".join(part.capitalize() for part in rest)


def flag_of(name: str) -> str:
    """Return an option's name as a flag of the command line.

    >>> flag_of("passwordFile")
    '--password-file'
    """
    return "--" + re.sub(r"([A-Z])", lambda found: f"-{found[1].lower()}", name)


_NO_LIMIT = 1 << 62  # a bound that no user means


@dataclass(frozen=True, slots=True)
class IntegerRange:
    """Reads a whole number between two bounds; the command line shows them."""

    lowest: int
    highest: int
    read: Callable[[str], int]

    def __call__(self, text: str) -> int:
        """Return the number."""
        return self.read(text)


@dataclass(frozen=True, slots=True)
class WordChoice:
    """Reads one of a few words; the command line shows and completes them."""

    words: tuple[str, ...]
    read: Callable[[str], str]

    def __call__(self, text: str) -> str:
        """Return the word."""
        return self.read(text)


def whole_number(lowest: int, highest: int) -> IntegerRange:
    """Read a whole number between two bounds."""

    def read(text: str) -> int:
        if not (text.isascii() and text.strip().isdigit()) or not lowest <= int(text) <= highest:
            bounds = f"from {lowest} to {highest}" if highest < _NO_LIMIT else f"of {lowest} or more"
            raise ValueError(f"must be a whole number {bounds}")
        return int(text)

    return IntegerRange(lowest, highest, read)


def one_of(*choices: str) -> WordChoice:
    """Read one of a few words, in any case."""

    def read(text: str) -> str:
        text = text.strip().lower()
        if text not in choices:
            raise ValueError(f"must be {', '.join(choices[:-1])} or {choices[-1]}")
        return text

    return WordChoice(choices, read)


def flag(text: str) -> bool:
    """Read true or false, also as yes or no."""
    word = text.strip().lower()
    return one_of("true", "false")({"yes": "true", "no": "false"}.get(word, word)) == "true"


_MOST_DIGITS = 38  # of a Spark DECIMAL
_FLOATING = re.compile(r"decimal\(38,\s*(\d+)\)")


def floating_decimal(text: str) -> str | int:
    """Read what DECIMAL(p) becomes: a word, or the scale of a DECIMAL(38,n)."""
    text = text.strip().lower()
    if text in ("string", "double"):
        return text
    found = _FLOATING.fullmatch(text)
    if not found or int(found[1]) > _MOST_DIGITS:
        raise ValueError("must be string, double or decimal(38,n) with n from 0 to 38")
    return int(found[1])


_BETWEEN_COMMAS = re.compile(r'(?:"(?:[^"]|"")*"|[^",])+')


def names(text: str) -> tuple[str, ...]:
    """Read names between commas; a comma in double quotes belongs to the name."""
    found = tuple(part.strip() for part in _BETWEEN_COMMAS.findall(text) if part.strip())
    if text.count('"') % 2:
        raise ValueError("has a double quote without its other half")
    if not found or len(set(found)) != len(found):
        raise ValueError("must be owner.table, or several of them with commas, each once")
    return found


def starting_position(text: str) -> str:
    """Read where a stream begins."""
    text = text.strip()
    text = text.lower() if text.isalpha() else text
    try:
        if text not in ("latest", "earliest"):
            parse(text)
    except BadOption:
        raise ValueError("must be latest, earliest, log:0xposition or one integer") from None
    return text


_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,3})?) ?(?:([kmgt])i?)?b?")
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def size(lowest: int, highest: int = 1 << 50) -> Callable[[str], int]:
    """Read a number of bytes such as 512m, 16GiB or 1.5g; k, m, g and t are powers of 1024."""

    def read(text: str) -> int:
        found = _SIZE.fullmatch(text.strip().lower())
        count = Decimal(found[1]) * (1 << _UNITS[found[2] or ""]) if found else Decimal(-1)
        if count != int(count) or not lowest <= count <= highest:
            raise ValueError(
                "must be a number of bytes such as 512m or 1.5g, from"
                f" {size_text(lowest)} to {size_text(highest)}"
            )
        return int(count)

    return read


def size_text(count: int) -> str:
    """Return a whole number in the largest unit that divides it.

    >>> size_text(64 << 20), size_text(100)
    ('64m', '100')
    """
    unit = next((name for name in "tgmk" if count and count % (1 << _UNITS[name]) == 0), "")
    return f"{count >> _UNITS[unit]}{unit}"


_PORT_BEHIND = re.compile(r"([\w.-]+):(\d{1,5})")


def host_name(text: str) -> str:
    """Read a server's name or address, without a port; a URL is not quoted: it may hold a password."""
    if "jdbc:" in text.lower():
        raise BadOption(
            "option 'host' is a JDBC URL.",
            "Of jdbc:informix-sqli://HOST:PORT/DATABASE:INFORMIXSERVER=SERVER, set options host, port,"
            " database and server.",
            option="host",
        )
    if "," in text:
        return ",".join(_place(each) for each in text.split(","))
    if behind := _PORT_BEHIND.fullmatch(text.strip()):
        raise BadOption(
            f"option 'host' is {text.strip()!r}, a host and a port.",
            f"Set host to {behind[1]} and port to {behind[2]}.",
            option="host",
        )
    if any(sign in text for sign in "/@;=") or " " in text.strip():
        raise BadOption(
            "option 'host' is no host name or address.",
            "Write it alone, without a scheme, a port or a path: db.example, 10.0.0.7.",
            option="host",
        )
    return text.strip()


def _place(text: str) -> str:
    """Read one host of a list, whose port may be its own."""
    name, _, port = text.strip().rpartition(":")
    if name and not name.endswith(":") and port.isascii() and port.isdigit():
        return f"{host_name(name)}:{port}"
    return host_name(text)


_LOCALE = re.compile(r"[a-z]{2,}_[a-z0-9]{2,}\.[\w.@-]+", re.IGNORECASE)


def locale(text: str) -> str:
    """Read a locale of connections, `language_territory.codeset`, whose code set is known."""
    if not _LOCALE.fullmatch(text.strip()):
        raise ValueError("must be language_territory.codeset, such as en_us.utf8 or en_us.8859-1")
    try:
        codec_of(text)
    except BadOption:
        raise ValueError("must have a code set that is known, such as en_us.utf8") from None
    return text.strip()


_TRANSPORTS = one_of(AUTO, ODBC, SQLI)


def _read_transport(text: str) -> str:
    if text.strip().lower() == "emulator":
        raise BadOption(
            "option 'transport': the emulator has no protocol of its own any more.",
            "Set transport=sqli: it speaks Informix's, as a server does.",
            option="transport",
        )
    return _TRANSPORTS.read(text)


transport_name = WordChoice(_TRANSPORTS.words, _read_transport)


_WILDCARDS = {"0.0.0.0", "::"}


def address(text: str) -> str:
    """Read the address of a host, without a port."""
    if text in _WILDCARDS:
        raise ValueError("must be one address that executors can connect to")
    return listening_address(text)


def listening_address(text: str) -> str:
    """Read an address to listen on, without a port; it may be a wildcard."""
    if not text.isascii() or any(sign in text for sign in " /@[]") or text.count(":") == 1:
        raise ValueError("must be a host name or an address, without a port")
    return text


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def local_folder(text: str) -> str:
    """Read the path of a folder; `s3://bucket` and `~/x` would become folders in the working one."""
    if scheme := _SCHEME.match(text):
        raise ValueError(
            f"must be a path that the driver's system knows: {scheme[0]} is a URL's scheme, and an"
            " object store has neither the lock nor the renaming that the spool rests on; mount a"
            " folder, or set segmentCopies to a URL for executors"
        )
    if not PurePosixPath(text).is_absolute():
        raise ValueError(
            "must be a path from the root on, such as /var/lib/informix-cdc: no shell expands ~ here,"
            " and another path would be another folder wherever the query is started"
        )
    return text


_SNAPSHOT_WORDS: dict[str, tuple[str, ...]] = {NONE: (), ALL: (ALL,)}

_NAMED = r'(?:"(?:[^"]|"")*"|[^",()])+'
_KEY = re.compile(rf"\s*({_NAMED})\(({_NAMED}(?:,{_NAMED})*)\)\s*(?:,|$)")


def snapshot_tables(text: str) -> tuple[str, ...]:
    """Read which tables have a snapshot: none, all, or a list; none is an empty one."""
    word = text.strip().lower()
    return _SNAPSHOT_WORDS[word] if word in _SNAPSHOT_WORDS else names(text)


def snapshot_keys(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Read keys of tables.

    >>> snapshot_keys('informix.items(order_id, "Line No")')
    (('informix.items', ('order_id', 'Line No')),)
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    at = 0
    while at < len(text):
        if (match := _KEY.match(text, at)) is None:
            raise ValueError("must be owner.table(column, ...), or several of them with commas")
        columns = tuple(path[-1] for path in read_paths(match[2]))
        found.append((match[1].strip(), columns))
        at = match.end()
    return tuple(found)
