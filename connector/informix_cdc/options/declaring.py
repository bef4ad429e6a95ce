"""Declare options, and parse their texts; a ValueError states what the text must be.

Rule: functions from text to value for the declarations in `declared.py`, and the words that values can
have.
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
FILES = "files"


def option(
    doc: str,
    read: Callable[[str], Any] = str,
    *,
    default: Any = MISSING,  # noqa: ANN401 - defaults have the type of their option
    name: str = "",
    secret: bool = False,
) -> Any:  # noqa: ANN401 - dataclasses.field is typed the same way
    """Declare an option: its description, the parser of its text, its default."""
    metadata = {"doc": doc, "read": read, "name": name}
    return field(default=default, metadata=metadata, repr=not secret)


def option_name(declared: Field[Any]) -> str:
    """Return the option name of a field."""
    first, *rest = declared.name.split("_")
    return str(declared.metadata["name"]) or first + "".join(part.capitalize() for part in rest)


def flag_of(name: str) -> str:
    """Return an option's name as a flag of the command line.

    >>> flag_of("passwordFile")
    '--password-file'
    """
    return "--" + re.sub(r"([A-Z])", lambda found: f"-{found[1].lower()}", name)


_NO_LIMIT = 1 << 62  # stands for no upper limit


@dataclass(frozen=True, slots=True)
class IntegerRange:
    """Parses a whole number in a range; the command line shows the range."""

    lowest: int
    highest: int
    read: Callable[[str], int]

    def __call__(self, text: str) -> int:
        """Return the number."""
        return self.read(text)


@dataclass(frozen=True, slots=True)
class WordChoice:
    """Parses one of several words; the command line shows and completes them."""

    words: tuple[str, ...]
    read: Callable[[str], str]

    def __call__(self, text: str) -> str:
        """Return the word."""
        return self.read(text)


def whole_number(lowest: int, highest: int) -> IntegerRange:
    """Return a parser of whole numbers in a range."""

    def read(text: str) -> int:
        if not (text.isascii() and text.strip().isdigit()) or not lowest <= int(text) <= highest:
            bounds = f"from {lowest} to {highest}" if highest < _NO_LIMIT else f"of {lowest} or more"
            raise ValueError(f"must be a whole number {bounds}")
        return int(text)

    return IntegerRange(lowest, highest, read)


def one_of(*choices: str) -> WordChoice:
    """Return a parser of one of several words, in any case."""

    def read(text: str) -> str:
        text = text.strip().lower()
        if text not in choices:
            raise ValueError(f"must be {', '.join(choices[:-1])} or {choices[-1]}")
        return text

    return WordChoice(choices, read)


def flag(text: str) -> bool:
    """Parse true or false, or yes or no."""
    word = text.strip().lower()
    return one_of("true", "false")({"yes": "true", "no": "false"}.get(word, word)) == "true"


_MOST_DIGITS = 38  # of a Spark DECIMAL
_FLOATING = re.compile(r"decimal\(38,\s*(\d{1,9})\)")


def floating_decimal(text: str) -> str | int:
    """Parse the type for DECIMAL(p): a word, or the scale of a DECIMAL(38,n)."""
    text = text.strip().lower()
    if text in ("string", "double"):
        return text
    found = _FLOATING.fullmatch(text)
    if not found or int(found[1]) > _MOST_DIGITS:
        raise ValueError("must be string, double or decimal(38,n) with n from 0 to 38")
    return int(found[1])


# `""` within quotes ends one text and begins the next, so that there is one way to read it.
_BETWEEN_COMMAS = re.compile(r'(?:"[^"]*+"|[^",]++)++')


def names(text: str) -> tuple[str, ...]:
    """Parse comma-separated names; a comma in double quotes is part of the name."""
    found = tuple(part.strip() for part in _BETWEEN_COMMAS.findall(text) if part.strip())
    if text.count('"') % 2:
        raise ValueError("has an unbalanced double quote")
    if not found or len(set(found)) != len(found):
        raise ValueError("must be owner.table, or several of them separated by commas, each once")
    return found


def starting_position(text: str) -> str:
    """Parse the starting position of a stream."""
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
    """Return a parser of sizes such as 512m, 16GiB or 1.5g; k, m, g and t are powers of 1024."""

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
    """Return a size in the largest unit that divides it.

    >>> size_text(64 << 20), size_text(100)
    ('64m', '100')
    """
    unit = next((name for name in "tgmk" if count and count % (1 << _UNITS[name]) == 0), "")
    return f"{count >> _UNITS[unit]}{unit}"


_PORT_BEHIND = re.compile(r"([\w.-]+):(\d{1,5})")


def host_name(text: str) -> str:
    """Parse a server's host name or address, without a port; never quote a URL with a password."""
    if "jdbc:" in text.lower():
        raise BadOption(
            "option 'host' is a JDBC URL.",
            "From jdbc:informix-sqli://HOST:PORT/DATABASE:INFORMIXSERVER=SERVER, set options"
            " host, port, database and server.",
            option="host",
        )
    if "," in text:
        return ",".join(_place(each) for each in text.split(","))
    if behind := _PORT_BEHIND.fullmatch(text.strip()):
        raise BadOption(
            f"option 'host' is {text.strip()!r}, which contains a port.",
            f"Set host to {behind[1]} and port to {behind[2]}.",
            option="host",
        )
    if any(sign in text for sign in "/@;=") or " " in text.strip():
        raise BadOption(
            "option 'host' is not a host name or address.",
            "Give it without a scheme, a port or a path: db.example, 10.0.0.7.",
            option="host",
        )
    return text.strip()


def _place(text: str) -> str:
    """Parse one host of a list; it may have its own port."""
    name, _, port = text.strip().rpartition(":")
    if name and not name.endswith(":") and port.isascii() and port.isdigit():
        return f"{host_name(name)}:{port}"
    return host_name(text)


_LOCALE = re.compile(r"[a-z]{2,}_[a-z0-9]{2,}\.[\w.@-]+", re.IGNORECASE)


def locale(text: str) -> str:
    """Parse a locale `language_territory.codeset` with a known code set."""
    if not _LOCALE.fullmatch(text.strip()):
        raise ValueError("must be language_territory.codeset, such as en_us.utf8 or en_us.8859-1")
    try:
        codec_of(text)
    except BadOption:
        raise ValueError("must have a known code set, such as en_us.utf8") from None
    return text.strip()


_TRANSPORTS = one_of(AUTO, ODBC, SQLI)


def _read_transport(text: str) -> str:
    if text.strip().lower() == "emulator":
        raise BadOption(
            "option 'transport': the emulator no longer has a protocol of its own.",
            "Set transport=sqli: the emulator speaks the Informix protocol.",
            option="transport",
        )
    return _TRANSPORTS.read(text)


transport_name = WordChoice(_TRANSPORTS.words, _read_transport)


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def local_folder(text: str) -> str:
    """Parse an absolute path; `s3://bucket` and `~/x` would be folders in the working directory."""
    if scheme := _SCHEME.match(text):
        raise ValueError(
            f"must be a local path: {scheme[0]} is the scheme of a URL, and object stores do not"
            " support the locks and renames that the spool needs; mount a folder, or set"
            " segmentCopies to a URL for executors"
        )
    if not PurePosixPath(text).is_absolute():
        raise ValueError(
            "must be an absolute path, such as /var/lib/informix-cdc: ~ is not expanded, and a"
            " relative path would depend on the working directory"
        )
    return text


FLIGHT = "grpc+tls://"
_HOST_AND_PORT = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([\w.-]+))(?::(\d{1,5}))?")
_WILDCARDS = {"0.0.0.0", "::"}


def host_and_port(text: str) -> tuple[str, int] | None:
    """Return the host and the port of an address; the port is 0 if it has none.

    >>> host_and_port("[::1]:8815"), host_and_port("driver")
    (('::1', 8815), ('driver', 0))
    """
    found = _HOST_AND_PORT.fullmatch(text)
    if found is None or not text.isascii() or int(found[3] or 0) >= 1 << 16:
        return None
    return found[1] or found[2], int(found[3] or 0)


def flight_address(text: str) -> tuple[str, int]:
    """Parse the address of a capture's Flight server.

    >>> flight_address("grpc+tls://db-near:8815")
    ('db-near', 8815)
    """
    found = host_and_port(text.removeprefix(FLIGHT))
    if found is None or not found[1] or not text.startswith(FLIGHT):
        raise ValueError("must be an absolute path, or an address such as grpc+tls://db-near:8815")
    return found


def delivery_place(text: str) -> str:
    """Parse how executors get rows: files, or an address of the driver."""
    if text.strip().lower() == FILES:
        return FILES
    found = host_and_port(text.removeprefix(FLIGHT))
    if found is None or not text.startswith(FLIGHT):
        raise ValueError("must be files, or an address such as grpc+tls://driver:8815")
    if found[0] in _WILDCARDS:
        raise ValueError("must have an address that executors can connect to")
    return text


def metrics_place(text: str) -> str:
    """Parse an address to listen on: HOST:PORT, or PORT for the loopback address.

    >>> metrics_place("9187")
    '127.0.0.1:9187'
    """
    text = f"{LOOPBACK}:{text}" if text.isascii() and text.isdigit() else text
    found = host_and_port(text)
    if found is None or not found[1]:
        raise ValueError("must be HOST:PORT or a port, such as 0.0.0.0:9187 or 9187")
    return text


def capture_place(text: str) -> str:
    """Parse the location of a shared capture: its folder, or the address of its Flight server."""
    if "://" not in text:
        return local_folder(text)
    flight_address(text)
    return text


_SNAPSHOT_WORDS: dict[str, tuple[str, ...]] = {NONE: (), ALL: (ALL,)}

_NAMED = r'(?:"[^"]*+"|[^",()]++)++'
_KEY = re.compile(rf"({_NAMED})\(({_NAMED}(?:,{_NAMED})*+)\)\s*+(?:,|$)")


def snapshot_tables(text: str) -> tuple[str, ...]:
    """Parse the tables to snapshot: none, all, or a list; none is an empty list."""
    word = text.strip().lower()
    return _SNAPSHOT_WORDS[word] if word in _SNAPSHOT_WORDS else names(text)


def snapshot_keys(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Parse keys of tables.

    >>> snapshot_keys('informix.items(order_id, "Line No")')
    (('informix.items', ('order_id', 'Line No')),)
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    at = 0
    while at < len(text):
        if (match := _KEY.match(text, at)) is None:
            raise ValueError("must be owner.table(column, ...), or several of them separated by commas")
        columns = tuple(path[-1] for path in read_paths(match[2]))
        found.append((match[1].strip(), columns))
        at = match.end()
    return tuple(found)


_CONDITION_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--|/\*|[{}();:]|[^'"{}();:/-]+|[-/]""")


def snapshot_conditions(text: str) -> tuple[tuple[str, str], ...]:
    """Parse conditions of tables.

    A condition becomes part of a SELECT, in parentheses that it must not close.

    >>> snapshot_conditions("informix.orders: order_date > '2026-01-01'; informix.items: qty > 0")
    (('informix.orders', "order_date > '2026-01-01'"), ('informix.items', 'qty > 0'))
    """
    grammar = "must be owner.table: CONDITION, or several of them separated by semicolons"
    entries: list[tuple[list[str], list[str]]] = [([], [])]
    place, depth, end = 0, 0, 0
    for token in _CONDITION_TOKEN.finditer(text):
        if token.start() != end:
            break
        end = token.end()
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth < 0 or token[0] in ("--", "/*", "{", "}"):
            raise ValueError("has a condition with unbalanced parentheses or a comment")
        if token[0] == ";" and depth == 0:
            entries.append(([], []))
            place = 0
        elif token[0] == ":" and place == 0:
            place = 1
        else:
            entries[-1][place].append(token[0])
    found = tuple(("".join(table).strip(), "".join(condition).strip()) for table, condition in entries)
    if end != len(text) or depth != 0:
        raise ValueError("has a condition with unbalanced quotes or parentheses")
    if not all(table and condition for table, condition in found):
        raise ValueError(grammar)
    return found
