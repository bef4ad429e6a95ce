"""What every transport must do, put to all of them: the emulator's, and ODBC with three drivers."""

from __future__ import annotations

import multiprocessing
import pickle
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace

import pytest

from capture_client.transport.conftest import Connect
from harness.runs.patience import patiently, wait_until
from harness.servers.scripted_server import (
    LONG_TEXT,
    PASSWORD,
    SILENT_SESSION,
    SLOW_SESSION,
    STREAM,
    TIMEOUT_RECORD,
    ScriptedServer,
)
from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    ConnectionLost,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.transport.base import ConnectionSettings, Transport

READ_SIZES = (128, 4_096, 65_536, 1_048_576)
AWKWARD_TEXTS = ("", "x", "it's; {braced} ?", "Zoë 漢字 😀", "a\0b", "  blank  ", "e" * 9_000)


@pytest.mark.parametrize("pair", [(1, 2), (-5, -6), (2**62, 2**61), (1 - 2**63, 0), (True, 1)])
def test_call_passes_integers_of_64_bits_and_returns_one(
    transport: Transport, pair: tuple[int, int]
) -> None:
    assert transport.call("EXECUTE FUNCTION total(?, ?)", *pair) == sum(pair)


def test_call_returns_a_negative_code_as_it_is(transport: Transport) -> None:
    assert transport.call("EXECUTE FUNCTION total(?, ?)", -83_700, -13) == -83_713


@pytest.mark.parametrize("text", AWKWARD_TEXTS, ids=ascii)
def test_call_passes_text_unchanged(transport: Transport, text: str) -> None:
    assert transport.call("EXECUTE FUNCTION size_of(?)", text) == len(text)


@pytest.mark.parametrize("function", ["nothing", "null"])
def test_a_function_that_answers_nothing_is_an_error(transport: Transport, function: str) -> None:
    with pytest.raises(ServerRefused, match="instead of an integer"):
        transport.call(f"EXECUTE FUNCTION {function}()")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_a_number_beyond_64_bits_is_refused_and_not_cut(transport: Transport, number: int) -> None:
    with pytest.raises(BadOption, match="64 bits"):
        transport.call("EXECUTE FUNCTION total(?, ?)", number, 0)


# ---- rows ----


def test_rows_tells_null_from_the_empty_text(transport: Transport) -> None:
    assert transport.rows("SELECT nulls") == [(None, "", "x"), ("", None, "y")]


@pytest.mark.parametrize("text", AWKWARD_TEXTS, ids=ascii)
def test_rows_returns_text_unchanged(transport: Transport, text: str) -> None:
    assert transport.rows("EXECUTE FUNCTION echo(?)", text) == [(text,)]


def test_rows_joins_the_pieces_of_a_long_value(transport: Transport) -> None:
    assert len(LONG_TEXT.encode()) > 2 * 65_536
    assert transport.rows("SELECT long") == [("before", LONG_TEXT, "after")]


@pytest.mark.parametrize("size", [65_534, 65_535, 65_536, 131_070])
def test_rows_returns_a_value_whole_that_just_fills_a_piece(transport: Transport, size: int) -> None:
    assert transport.rows("EXECUTE FUNCTION echo(?)", "x" * size) == [("x" * size,)]


def test_rows_returns_all_rows_in_order(transport: Transport) -> None:
    assert transport.rows("SELECT many") == [(str(number), None) for number in range(5_000)]


def test_a_query_without_rows_is_an_empty_list(transport: Transport) -> None:
    assert transport.rows("SELECT no rows") == []


# ---- lo_read ----


def both(first: memoryview, second: memoryview) -> tuple[bytes, bytes]:
    return bytes(first), bytes(second)


@pytest.mark.parametrize("size", READ_SIZES)
def test_reads_return_the_session_s_bytes_in_order(transport: Transport, size: int) -> None:
    count = min(8, len(STREAM) // size)
    read = b"".join([bytes(transport.lo_read(1, size)) for _ in range(count)])
    assert read == STREAM[: count * size]


def test_the_size_may_change_between_reads(transport: Transport) -> None:
    sizes = (128, 1_000, 128, 128, 65_536, 200)
    read = b"".join([bytes(transport.lo_read(2, size)) for size in sizes])
    assert read == STREAM[: sum(sizes)]


def test_two_sessions_on_one_connection_do_not_mix(transport: Transport) -> None:
    for turn in range(3):
        expected = STREAM[turn * 128 : turn * 128 + 128]
        assert [transport.lo_read(1, 128), transport.lo_read(2, 128)] == [expected, expected]


def test_a_read_stays_valid_until_the_call_after_the_next(transport: Transport) -> None:
    first = transport.lo_read(1, 128)
    second = transport.lo_read(1, 128)
    assert both(first, second) == (STREAM[:128], STREAM[128:256])
    transport.rows("SELECT nulls")
    assert second == STREAM[128:256]
    third = transport.lo_read(1, 128)
    assert both(second, third) == (STREAM[128:256], STREAM[256:384])


def test_two_buffers_are_used_in_turn_and_no_third(transport: Transport) -> None:
    views = [transport.lo_read(1, 128) for _ in range(4)]
    assert both(views[0], views[1]) == both(views[2], views[3]) == (STREAM[256:384], STREAM[384:512])


def test_a_read_of_another_size_leaves_the_last_one_valid(transport: Transport) -> None:
    first = transport.lo_read(1, 128)
    second = transport.lo_read(1, 4_096)
    assert both(first, second) == (STREAM[:128], STREAM[128:4_224])


def test_a_view_outlives_the_connection(transport: Transport) -> None:
    view = transport.lo_read(1, 128)
    transport.close()
    assert view == STREAM[:128]


def test_a_view_cannot_be_written_to(transport: Transport) -> None:
    with pytest.raises(TypeError):
        transport.lo_read(1, 128)[0] = 1


@pytest.mark.parametrize(("session", "expected"), [(20, TIMEOUT_RECORD), (21, b""), (22, None)])
def test_a_read_is_as_long_as_the_server_had_bytes(
    transport: Transport, session: int, expected: bytes | None
) -> None:
    for _ in range(3):
        expected = STREAM[:100] if expected is None else expected
        assert transport.lo_read(session, 4_096) == expected


def test_statements_and_reads_may_alternate(transport: Transport) -> None:
    for turn in range(4):
        assert transport.call("EXECUTE FUNCTION total(?, ?)", turn, 1) == turn + 1
        assert transport.lo_read(1, 128) == STREAM[turn * 128 : turn * 128 + 128]


@pytest.mark.parametrize("size", [0, -1, 2**31])
def test_a_size_that_cannot_be_read_is_refused(transport: Transport, size: int) -> None:
    with pytest.raises(BadOption, match="bytes"):
        transport.lo_read(1, size)


def test_a_waiting_read_lets_other_threads_run(transport: Transport) -> None:
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        assert bytes(transport.lo_read(SLOW_SESSION, 128)) == b"late"
    finally:
        done.set()
        thread.join()
    assert len(ticks) > 20


# ---- errors at connect ----


@pytest.mark.parametrize(
    ("changes", "words", "native"),
    [
        ({"password": "wrong"}, "refused user informix", -951),
        ({"server": "other"}, "is not named other", -761),
        ({"database": "stores"}, "Database stores on informix cannot be opened", -329),
    ],
)
def test_a_wrong_setting_is_named(
    connect: Connect, changes: dict[str, str], words: str, native: int
) -> None:
    with pytest.raises(AccessRefused, match=words) as caught:
        connect(**changes)
    assert caught.value.answer.native == native
    assert caught.value.remedy


def test_a_port_where_nobody_listens_is_named(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(AccessRefused, match=rf"127\.0\.0\.1:{port}") as caught:
        connect(port=port)
    assert caught.value.is_temporary


def test_a_host_that_does_not_exist_is_named(connect: Connect) -> None:
    with pytest.raises(AccessRefused, match=r"no-such-host\.invalid"):
        connect(host="no-such-host.invalid")


@pytest.mark.slow
def test_a_server_that_accepts_and_stays_silent_is_given_up(connect: Connect) -> None:
    begin = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as mute, pytest.raises(AccessRefused) as caught:
        connect(port=mute.getsockname()[1], connect_timeout_seconds=1)
    assert time.monotonic() - begin < patiently(5)
    assert caught.value.is_temporary


# ---- errors of statements ----


@pytest.mark.parametrize(
    ("statement", "error", "sqlstate", "native"),
    [
        ("SELEC", ServerRefused, "42000", -201),
        ("SELECT forbidden", AccessRefused, "42000", -272),
    ],
)
def test_a_refused_statement_carries_the_server_s_reason(
    transport: Transport,
    statement: str,
    error: type[InformixCdcError],
    sqlstate: str,
    native: int,
) -> None:
    with pytest.raises(error) as caught:
        transport.rows(statement)
    answer = caught.value.answer
    assert (answer.sqlstate, answer.native) == (sqlstate, native)
    assert transport.rows("SELECT nulls"), "the connection survives a refused statement"


def test_an_unknown_session_descriptor_is_refused(transport: Transport) -> None:
    with pytest.raises(ServerRefused, match="descriptor") as caught:
        transport.lo_read(4_711, 128)
    assert caught.value.answer.native == -12_008
    assert transport.lo_read(1, 128) == STREAM[:128]


def test_every_reason_is_kept(transport: Transport) -> None:
    with pytest.raises(ServerRefused, match=r"(?s)Could not insert .*row.*ISAM error: no .*space"):
        transport.rows("SELECT two reasons")


# ---- a connection that ends ----


def test_a_server_killed_during_a_read_is_a_lost_connection(
    transport: Transport, server: ScriptedServer
) -> None:
    killer = threading.Timer(0.2, server.drop_connections)
    killer.start()
    with pytest.raises(ConnectionLost):
        transport.lo_read(SILENT_SESSION, 128)
    killer.join()
    with pytest.raises(ConnectionLost):
        transport.rows("SELECT nulls")


@pytest.mark.slow
def test_a_server_silent_for_too_long_is_a_lost_connection(connect: Connect) -> None:
    transport = connect(receive_timeout_seconds=1)
    begin = time.monotonic()
    with pytest.raises(ConnectionLost, match="in time"):
        transport.lo_read(SILENT_SESSION, 128)
    assert time.monotonic() - begin < patiently(5)


USES: list[Callable[[Transport], object]] = [
    lambda transport: transport.call("EXECUTE FUNCTION total(?, ?)", 1, 2),
    lambda transport: transport.rows("SELECT nulls"),
    lambda transport: transport.lo_read(1, 128),
]


@pytest.mark.parametrize("use", USES, ids=["call", "rows", "lo_read"])
def test_a_closed_connection_refuses_every_use(
    transport: Transport, use: Callable[[Transport], object]
) -> None:
    use(transport)
    transport.close()
    transport.close()
    with pytest.raises(ConnectionLost, match="closed"):
        use(transport)


def test_closing_waits_for_the_read_in_another_thread(transport: Transport) -> None:
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(bytes(transport.lo_read(23, 128))))
    reader.start()
    wait_until(lambda: "lo_read" in functions_of(reader))
    time.sleep(0.1)  # until it holds the connection
    transport.close()
    reader.join()
    assert read == [b"late"]


def functions_of(thread: threading.Thread) -> list[str]:
    """Return the names of the functions that a thread is in."""
    frame = sys._current_frames().get(thread.ident or 0)
    return [found.name for found in traceback.extract_stack(frame)]


def _use_after_fork(transport: Transport, answers: multiprocessing.SimpleQueue[object]) -> None:
    for use in USES:
        try:
            use(transport)
            answers.put("no error")
        except InformixCdcError as error:
            answers.put(error)
    transport.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_may_not_use_its_parent_s_connection(transport: Transport) -> None:
    fork = multiprocessing.get_context("fork")
    answers = fork.SimpleQueue()
    transport.lo_read(1, 128)
    child = fork.Process(target=_use_after_fork, args=(transport, answers))
    child.start()
    refusals = [answers.get() for _ in USES]
    child.join()
    assert child.exitcode == 0, "closing in the child is harmless"
    assert all(isinstance(each, ConnectionLost) and "fork" in str(each) for each in refusals)
    # the child closed its copy: the parent's connection must not have noticed
    assert transport.lo_read(1, 128) == STREAM[128:256]


# ---- secrets and odd settings ----


def _everything_said(error: InformixCdcError) -> str:
    revived = pickle.loads(pickle.dumps(error))
    return " ".join((str(error), repr(error), repr(vars(error)), str(revived), repr(vars(revived))))


def test_the_password_is_in_no_error_of_connecting(connect: Connect) -> None:
    with pytest.raises(AccessRefused) as caught:
        connect(password="wr0ng}pass;word")
    said = _everything_said(caught.value)
    assert "Incorrect password" in said
    assert "wr0ng" not in said
    assert "pass;word" not in said


def test_the_password_is_in_no_error_of_a_statement(transport: Transport) -> None:
    with pytest.raises(ServerRefused) as caught:
        transport.rows("SELECT secret")
    said = _everything_said(caught.value)
    assert "***" in said
    assert "s3cr" not in said  # how the password begins


def test_the_password_is_in_no_repr(transport: Transport, settings: ConnectionSettings) -> None:
    assert PASSWORD not in repr(transport) + repr(settings)
    assert "s3cr" not in repr(replace(settings, user="other"))


def test_a_transport_cannot_be_pickled(transport: Transport) -> None:
    with pytest.raises((TypeError, ValueError)):
        pickle.dumps(transport)


def test_settings_reach_the_server(connect: Connect, server: ScriptedServer) -> None:
    connect(db_locale="de_de.8859-1")
    assert (server.logins[-1].server, server.logins[-1].user) == ("informix", "informix")
    assert (
        server.logins[-1].environment.items()
        >= {"DB_LOCALE": "de_de.8859-1", "DELIMIDENT": "y"}.items()
    )


@pytest.mark.usefixtures("transport")
def test_an_empty_database_locale_is_not_named(server: ScriptedServer) -> None:
    assert "DB_LOCALE" not in server.logins[-1].environment


def test_a_nul_in_a_setting_is_refused(connect: Connect) -> None:
    with pytest.raises(BadOption, match="UID"):
        connect(user="a\0b")
