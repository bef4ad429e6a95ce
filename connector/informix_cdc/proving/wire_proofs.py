"""Proofs about Informix's native protocol; each needs transport=sqli.

Rule: see `outcomes.py`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal

from informix_capture_client import statements
from informix_capture_client.catalog import Catalog
from informix_capture_client.errors import AccessRefused, InformixCdcError
from informix_capture_client.transport import SqliTransport, Transport
from informix_cdc.proving.catalog_proofs import NOBODY
from informix_cdc.proving.outcomes import (
    Deviation,
    error_text,
    expect,
    expect_equal,
    natives_of,
    refused,
)
from informix_cdc.proving.proofs import proof
from informix_cdc.proving.prover import Prover

_SQLI = "sqli"
_BIT_OF_WIDE_LENGTHS = 0x02  # in the eighth byte
_MOST_READS = 1_000


@contextmanager
def _native(prover: Prover) -> Iterator[SqliTransport]:
    """Connect to the database, for what only this transport has."""
    with prover.connection() as transport:
        assert isinstance(transport, SqliTransport)
        yield transport


def _content(line: str) -> bytes:
    return bytes.fromhex(line.split()[-1])


@proof(64, does="logs in as IBM's JDBC driver does", transport=_SQLI, reads=False)
def the_login(prover: Prover) -> None:
    """The answer has a version and the server's name."""
    with _native(prover) as transport:
        is_known = re.search(r"Version \d+\.\d+|emulator", transport.server_version)
        expect(bool(is_known), "a version in the answer", "none")
        name = Catalog(transport, prover.database).server_name()
    expect(name == prover.name, "the server's name", "another name")


@proof(65, does="reads the protocol features that the server answers", transport=_SQLI, reads=False)
def protocol_features(prover: Prover) -> None:
    """They are its own, with lengths of 32 bits."""
    with prover.traced() as lines, prover.connection():
        pass
    answers = [line for line in lines if " < SQ_PROTOCOLS " in line]
    expect(bool(answers), "an answer to SQ_PROTOCOLS", "none")
    bits = _content(answers[-1])[4:]
    prover.note(f"SQ_PROTOCOLS is answered with {bits.hex()}")
    expect(bool(bits[7] & _BIT_OF_WIDE_LENGTHS), "lengths of 32 bits", "others")


@proof(58, does="reads the properties of the database in the answer to its opening", transport=_SQLI,
       reads=False)  # fmt: skip
def properties_of_the_database(prover: Prover) -> None:
    """It has a log, is not ANSI, and the server is Informix."""
    with prover.traced() as lines, prover.connection():
        pass
    done = [line for line in lines if " < SQ_DONE " in line]
    expect(bool(done), "SQ_DONE after the opening", "none")
    warnings = int.from_bytes(_content(done[-1])[2:4])
    expect_equal("the lower three bits", 0x05, warnings & 0x07)


@proof(66, does="logs in as a user who does not exist", transport=_SQLI, reads=False)
def a_refused_login(prover: Prover) -> None:
    """It is refused with -951 or -952, or without a number."""
    try:
        prover.connect(prover.database, login=NOBODY, db_locale=prover.locale).close()
    except AccessRefused as reason:
        if reason.answer is None:
            prover.note("a refused login has no error number")
            return
        prover.note(f"a refused login has {error_text(reason)}")
        is_known = bool(natives_of(reason) & {-951, -952})
        expect(is_known, "SQL error -951 or -952, or none", error_text(reason))
    else:
        raise Deviation("refused", "accepted")


@proof(67, does="opens sysmaster with the locale of another code set", transport=_SQLI, reads=False)
def another_locale(prover: Prover) -> None:
    """It is refused with -23197."""
    with closing(prover.connect(statements.SYSTEM_DATABASE)) as transport:
        ((collate,), *_) = transport.rows(statements.DATABASE_LOCALE, statements.SYSTEM_DATABASE)
    is_utf8 = "57372" in (collate or "") or "utf8" in (collate or "")
    other = "en_US.819" if is_utf8 else "en_US.utf8"
    with refused("another code set", -23197, -23101):
        prover.connect(statements.SYSTEM_DATABASE, db_locale=other).close()


@proof(69, does="executes a function and counts the messages", transport=_SQLI, reads=False)
def messages_of_a_function(prover: Prover) -> None:
    """It is described as of type 56, and one fetch returns its row."""
    with prover.catalog() as catalog:
        locale = catalog.database_locale()
    database = prover.product.capture_database or prover.database
    with (
        prover.traced() as lines,
        closing(prover.connect(database, db_locale=locale)) as transport,
    ):
        del lines[:]
        transport.rows(statements.ERROR_TEXT, "CDC_E_OK", "en_us.819")
    kinds = [int.from_bytes(_content(line)[2:4]) for line in lines if " < SQ_DESCRIBE " in line]
    expect_equal("statement types", [56], kinds)
    found = [sum(name in line for line in lines) for name in (" > SQ_NFETCH ", " < SQ_TUPLE ")]
    expect_equal("fetches and rows", [1, 1], found)


@proof(71, does="reads a capture session that does not exist", transport=_SQLI, reads=False)
def a_session_that_does_not_exist(prover: Prover) -> None:
    """It is refused with -12008, and the connection stays usable."""
    with _native(prover) as transport:
        with refused("the read", -12_008):
            transport.lo_read(4_711, 4_096)
        expect(bool(transport.rows(statements.SERVER_NAME)), "an answer afterwards", "none")


@proof(72, does="interrupts a read that waits", transport=_SQLI)
def an_interrupted_read(prover: Prover) -> None:
    """It ends with -213, and the connection stays usable."""
    with prover.cdc_connection() as transport:
        assert isinstance(transport, SqliTransport)
        session = transport.call(statements.OPEN_SESSION, prover.name, 0, 10, 1, 1, 1)
        expect_equal("activation", 0, transport.call(statements.ACTIVATE_SESSION, session, 0))
        is_over = threading.Event()

        def interrupt() -> None:
            while not is_over.wait(0.5):  # between two reads it interrupts nothing
                transport.interrupt()

        other = threading.Thread(target=interrupt, daemon=True)
        other.start()
        try:
            with refused("the read", -213):
                for _ in range(_MOST_READS):
                    transport.lo_read(session, 65_536)
        finally:
            is_over.set()
            other.join()
        expect(bool(transport.rows(statements.SERVER_NAME)), "an answer afterwards", "none")


@proof(73, does="selects from a table that does not exist", transport=_SQLI, reads=False)
def the_word_of_an_error(prover: Prover) -> None:
    """The error has the name of the table once."""
    with prover.connection() as transport:
        try:
            transport.rows("SELECT t.a FROM ifxcdc_no_such_table t")
        except InformixCdcError as reason:
            expect(-206 in natives_of(reason), "SQL error -206", error_text(reason))
            expect_equal("names in the message", 1, reason.message.count("ifxcdc_no_such_table"))
        else:
            raise Deviation("SQL error -206", "no error")


@proof(76, does="selects 200 rows of 100 characters", transport=_SQLI, reads=False)
def a_long_result(prover: Prover) -> None:
    """All of them come."""
    with prover.connection() as transport:
        transport.rows("CREATE TEMP TABLE many (n INTEGER, filler CHAR(100)) WITH NO LOG")
        for number in range(200):
            transport.rows("INSERT INTO many VALUES (?, 'x')", number)
        found = _numbers(transport, "SELECT t.n FROM many t ORDER BY t.n")
    expect(found == [*range(200)], "200 rows in order", f"{len(found)} rows")


def _numbers(transport: Transport, statement: str) -> list[int]:
    return [int(number or -1) for (number,) in transport.rows(statement)]


@proof(77, does="selects a row of 9,000 characters", transport=_SQLI, reads=False)
def a_long_row(prover: Prover) -> None:
    """It comes whole."""
    with prover.connection() as transport:
        transport.rows("CREATE TEMP TABLE wide (a CHAR(9000), b INTEGER) WITH NO LOG")
        transport.rows("INSERT INTO wide VALUES (?, 7)", "y" * 9000)
        ((text, number),) = transport.rows("SELECT t.a, t.b FROM wide t")
    is_whole = (text, number) == ("y" * 9000, "7")
    expect(is_whole, "the whole row", f"{len(text or '')} characters")


@proof(78, does="selects the most negative DECIMAL and NULL", transport=_SQLI, reads=False)
def the_most_negative_decimal(prover: Prover) -> None:
    """The lowest number is not read as NULL."""
    with prover.connection() as transport:
        transport.rows("CREATE TEMP TABLE low (d DECIMAL(16), n DECIMAL(16)) WITH NO LOG")
        transport.rows("INSERT INTO low VALUES (-1E124, NULL)")
        ((lowest, null),) = transport.rows("SELECT t.d, t.n FROM low t")
    is_sound = null is None and lowest is not None and Decimal(lowest) == Decimal("-1E+124")
    expect(is_sound, "-1E+124 and NULL", "other values")
