from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from emulator.conftest import ORDERS
from emulator.raw_client import RawClient, Refused
from informix_emulator import EmulatedServer, ListeningServer
from informix_emulator.sql_errors import SqlError

Connect = Callable[..., RawClient]
CODES = {
    "CDC_E_APIVERS": -83702,
    "CDC_E_NODB": -83703,
    "CDC_E_DBNOTLOGGED": -83704,
    "CDC_E_NOTAB": -83705,
    "CDC_E_TABPROPERTIES": -83706,
    "CDC_E_NOCOL": -83707,
    "CDC_E_NOSES": -83708,
    "CDC_E_TABCAPTURED": -83710,
    "CDC_E_TABNOTCAPTURED": -83711,
    "CDC_E_ARGNULL": -83712,
    "CDC_E_LSN": -83713,
    "CDC_E_DUPLSESS": -83715,
    "CDC_E_ARG1": -83721,
    "CDC_E_ARG2": -83722,
    "CDC_E_ARG3": -83723,
    "CDC_E_ARG4": -83724,
    "CDC_E_BADSTATE": -83730,
    "CDC_E_LOCALEMISMATCH": -83734,
}


@pytest.fixture
def client(server: EmulatedServer, connect: Connect) -> RawClient:
    server.create_database("plain", logged=False)
    server.create_table("plain:informix.t", "a integer")
    server.create_table("stores:informix.off", "a integer")
    server.create_table("stores:informix.seen", "a integer", kind="view")
    server.create_table("stores:informix.raw", "a integer", kind="raw")
    server.create_table("stores:informix.texts", "a integer, b text", full_row_logging=True)
    server.users["guest"] = "g"
    return connect(server)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("elsewhere", 0, 0, 1, 1, 1), "CDC_E_ARG1"),
        (("informix", 1, 0, 1, 1, 1), "CDC_E_ARG2"),
        (("informix", 0, 0, 0, 1, 1), "CDC_E_ARG4"),
        (("informix", 0, 0, 257, 1, 1), "CDC_E_ARG4"),
        (("informix", 0, 0, 1, 2, 1), "CDC_E_APIVERS"),
        (("informix", 0, 0, 1, 1, 2), "CDC_E_APIVERS"),
        (("informix", 0, None, 1, 1, 1), "CDC_E_ARGNULL"),
    ],
)
def test_a_session_is_not_opened_with(
    client: RawClient, arguments: tuple[object, ...], code: str
) -> None:
    assert client.call("cdc_opensess", *arguments) == CODES[code]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((0, 99, 0, ORDERS, "id", 1), "CDC_E_NOSES"),
        ((1, 1, ORDERS, "id", 1), "CDC_E_ARG2"),
        ((1, 0, "orders", "id", 1), "CDC_E_ARG3"),
        ((1, 0, "nowhere:informix.orders", "id", 1), "CDC_E_NODB"),
        ((1, 0, "plain:informix.t", "a", 1), "CDC_E_DBNOTLOGGED"),
        ((1, 0, "stores:informix.none", "a", 1), "CDC_E_NOTAB"),
        ((1, 0, "stores:informix.off", "a", 1), "CDC_E_TABPROPERTIES"),
        ((1, 0, "stores:informix.seen", "a", 1), "CDC_E_TABPROPERTIES"),
        ((1, 0, ORDERS, "id,none", 1), "CDC_E_NOCOL"),
        ((1, 0, ORDERS, "", 1), "CDC_E_NOCOL"),
        ((1, 0, "stores:informix.texts", "a,b", 1), "CDC_E_ARG4"),
        ((1, 0, ORDERS, None, 1), "CDC_E_ARGNULL"),
    ],
)
def test_a_table_is_not_captured_with(
    client: RawClient, arguments: tuple[object, ...], code: str
) -> None:
    client.open()
    assert client.call("cdc_startcapture", *arguments[-5:]) == CODES[code]


def test_a_table_is_captured_once_and_released_once(client: RawClient) -> None:
    session = client.open()
    client.capture(ORDERS, "id")
    capture = (session, 0, ORDERS)
    assert client.call("cdc_startcapture", *capture, "id", 1) == CODES["CDC_E_TABCAPTURED"]
    assert client.call("cdc_endcapture", session, 5, ORDERS) == CODES["CDC_E_ARG2"]
    assert client.call("cdc_endcapture", *capture) == 0
    assert client.call("cdc_endcapture", *capture) == CODES["CDC_E_TABNOTCAPTURED"]


def test_a_connection_has_one_session(client: RawClient) -> None:
    session = client.open()
    again = client.call("cdc_opensess", "informix", 0, 0, 1, 1, 1)
    assert again == CODES["CDC_E_DUPLSESS"]
    assert client.call("cdc_closesess", session) == 0
    assert client.call("cdc_closesess", session) == CODES["CDC_E_NOSES"]
    assert client.open() > session


def test_a_session_belongs_to_its_connection(
    server: EmulatedServer, client: RawClient, connect: Connect
) -> None:
    other = connect(server)
    other.session = client.open()
    assert other.call("cdc_activatesess", other.session, 0) == CODES["CDC_E_NOSES"]
    with pytest.raises(Refused) as refused:
        other.read()
    assert refused.value.native == -12008


def test_a_session_is_activated_and_deactivated_once(client: RawClient) -> None:
    session = client.open()
    assert client.call("cdc_deactivatesess", session) == CODES["CDC_E_BADSTATE"]
    assert client.call("cdc_activatesess", session, -1) == CODES["CDC_E_ARG2"]
    assert client.call("cdc_activatesess", session, 5) == CODES["CDC_E_LSN"]
    assert client.call("cdc_activatesess", session, 0) == 0
    assert client.call("cdc_activatesess", session, 0) == CODES["CDC_E_BADSTATE"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("t", 1), "CDC_E_ARG1"),
        ((ORDERS, 2), "CDC_E_ARG2"),
        (("plain:informix.t", 1), "CDC_E_DBNOTLOGGED"),
        (("stores:informix.raw", 1), "CDC_E_TABPROPERTIES"),
        ((ORDERS, None), "CDC_E_ARGNULL"),
    ],
)
def test_full_row_logging_is_not_set_with(
    client: RawClient, arguments: tuple[object, ...], code: str
) -> None:
    assert client.call("cdc_set_fullrowlogging", *arguments) == CODES[code]


def test_full_row_logging_stays_on_while_the_table_is_captured(client: RawClient) -> None:
    session = client.open()
    client.capture(ORDERS, "id")
    with pytest.raises(Refused) as refused:
        client.call("cdc_set_fullrowlogging", ORDERS, 0)
    assert abs(refused.value.native) == 19816
    client.call("cdc_closesess", session)
    assert client.call("cdc_set_fullrowlogging", ORDERS, 0) == 0


def test_switching_full_row_logging_off_may_fail_for_a_while(
    server: EmulatedServer, client: RawClient
) -> None:
    server.refuse_row_logging_off(2)
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            client.call("cdc_set_fullrowlogging", ORDERS, 0)
        assert abs(refused.value.native) == 19816
    assert client.call("cdc_set_fullrowlogging", ORDERS, 1) == 0
    assert client.call("cdc_set_fullrowlogging", ORDERS, 0) == 0


def test_a_table_is_altered_only_without_full_row_logging(
    server: EmulatedServer, client: RawClient
) -> None:
    before = server.table(ORDERS).partnum
    with pytest.raises(SqlError):
        server.alter_table(ORDERS, "id serial, since date")
    server.set_full_row_logging(ORDERS, on=False)
    server.alter_table(ORDERS, "id serial, since date")
    wanted = f"tabid = {server.table(ORDERS).tabid} order by colno"
    columns = client.rows(f"select colname from stores:syscolumns where {wanted}")
    assert columns == [("id",), ("since",)]
    assert server.table(ORDERS).partnum != before


def test_a_table_altered_in_place_is_not_captured_until_its_rows_have_one_layout(
    server: EmulatedServer, client: RawClient
) -> None:
    client.open()
    table = server.table(ORDERS)
    server.set_full_row_logging(ORDERS, on=False)
    server.alter_table(ORDERS, "id serial, since date", in_place=True)
    server.set_full_row_logging(ORDERS, on=True)
    assert server.table(ORDERS).partnum == table.partnum
    versions = (
        f"select pta_oldvers, pta_newvers from sysmaster:sysptnhdr where partnum = {table.partnum}"
    )
    arguments = (client.session, 0, ORDERS, "since", 1)
    assert client.rows(versions) == [("0", "1")]
    assert client.call("cdc_startcapture", *arguments) == -83793
    server.finish_alter(ORDERS)
    assert client.rows(versions) == [("1", "1")]
    assert client.call("cdc_startcapture", *arguments) == 0


@pytest.mark.parametrize(
    ("locale", "code"),
    [
        ("en_US.utf8", 0),
        ("en_us.UTF8", 0),
        ("EN_US.57372", 0),
        ("en_GB.utf8", CODES["CDC_E_LOCALEMISMATCH"]),
    ],
)
def test_a_db_locale_must_be_that_of_the_database(
    server: EmulatedServer, connect: Connect, locale: str, code: int
) -> None:
    client = connect(server, extra=f";DB_LOCALE={locale}")
    assert client.call("cdc_set_fullrowlogging", ORDERS, 1) == code


# What a live server lets in, by the database's locale: only the code set counts.
LATIN, UTF8 = "en_US.819", "en_US.utf8"
SAYS = {
    "nothing": "",
    "its own": ";DB_LOCALE={own}",
    "another territory": ";DB_LOCALE=de_DE.{code_set}",
    "another code set": ";DB_LOCALE=en_US.1252",
    "nonsense": ";DB_LOCALE=nonsense",
    "the client's alone": ";CLIENT_LOCALE={own}",
}
UNSET_IS_LATIN, UNSET_IS_THE_CLIENTS = LATIN, None
ADMITTED = [
    (LATIN, UNSET_IS_LATIN, "nothing", 0),
    (LATIN, UNSET_IS_LATIN, "its own", 0),
    (LATIN, UNSET_IS_LATIN, "another territory", 0),
    (LATIN, UNSET_IS_LATIN, "another code set", -23197),
    (UTF8, UNSET_IS_LATIN, "nothing", -23197),
    (UTF8, UNSET_IS_LATIN, "its own", 0),
    (UTF8, UNSET_IS_LATIN, "another territory", 0),
    (UTF8, UNSET_IS_LATIN, "another code set", -23197),
    (UTF8, UNSET_IS_LATIN, "nonsense", -23101),
    (UTF8, UNSET_IS_LATIN, "the client's alone", -23197),
    (UTF8, UNSET_IS_THE_CLIENTS, "the client's alone", 0),
    (UTF8, UNSET_IS_THE_CLIENTS, "nothing", -23197),
    (UTF8, UNSET_IS_THE_CLIENTS, "its own", 0),
]


@pytest.mark.parametrize(("locale", "unset", "says", "native"), ADMITTED)
def test_a_database_lets_in_connections_of_its_own_code_set(
    connect: Connect, locale: str, unset: str | None, says: str, native: int
) -> None:
    server = EmulatedServer(unset_locale=unset)
    server.create_database("shop", locale=locale)
    code_set = locale.partition(".")[2]
    extra = ";DB_LOCALE=" + SAYS[says].format(own=locale, code_set=code_set)
    settings = {"database": "shop", "extra": extra}
    if not native:
        connect(server, **settings)
        return
    with pytest.raises(Refused) as refused:
        connect(server, **settings)
    assert refused.value.native == native


@pytest.mark.parametrize(
    ("settings", "database", "locale"),
    [
        ({}, "sysmaster", "en_US.819"),
        ({}, "syscdcv1", "en_US.819"),
        ({"cdc_locale": "en_US.utf8"}, "syscdcv1", "en_US.57372"),
        ({"poses_as": "gbase8s"}, "syscdcv1", "zh_CN.57372"),
    ],
)
def test_the_system_databases_have_the_locale_of_who_made_them(
    settings: dict[str, str], database: str, locale: str
) -> None:
    server = EmulatedServer(**settings)  # type: ignore[arg-type]
    assert server.databases[database].locale == locale


@pytest.mark.parametrize(
    ("keyword", "codes"),
    [
        ("", ["CDC_E_NOTAB", "CDC_E_NOCOL"]),
        (";DELIMIDENT=n", ["CDC_E_NOTAB", "CDC_E_NOCOL"]),
        (";DELIMIDENT=y", []),
    ],
)
def test_quoted_names_are_understood_where_the_connection_delimits_names(
    server: EmulatedServer, connect: Connect, keyword: str, codes: list[str]
) -> None:
    server.create_table('stores:informix."Big Orders"', '"Ship Date" date', full_row_logging=True)
    server.create_table("stores:informix.small", '"Ship Date" date', full_row_logging=True)
    client = connect(server, extra=keyword)
    session = client.open()
    captures = [
        ('stores:informix."Big Orders"', '"Ship Date"'),
        ("stores:informix.small", '"Ship Date"'),
    ]
    answers = [client.call("cdc_startcapture", session, 0, *each, 1) for each in captures]
    assert answers == ([CODES[code] for code in codes] or [0, 0])


def test_functions_are_found_only_in_the_cdc_database_or_by_its_name(
    server: EmulatedServer, connect: Connect
) -> None:
    client = connect(server, database="stores")
    with pytest.raises(Refused) as refused:
        client.rows("execute function informix.cdc_opensess('informix', 0, 5, 64, 1, 1)")
    assert refused.value.native == -674
    rows = client.rows("execute function syscdcv1:informix.cdc_opensess('informix', 0, 5, 64, 1, 1);")
    assert rows == [("1",)]


def test_functions_take_the_right_number_of_numbers(client: RawClient) -> None:
    with pytest.raises(Refused) as refused:
        client.call("cdc_opensess", "informix")
    assert refused.value.native == -674
    with pytest.raises(Refused) as refused:
        client.call("cdc_opensess", "informix", 0, "long", 1, 1, 1)
    assert refused.value.native == -1213


@pytest.mark.parametrize(
    ("settings", "native"),
    [
        ({"server_name": "other"}, -761),
        ({"password": "wrong"}, -951),
        ({"user": "nobody"}, -951),
        ({"database": "nowhere"}, -329),
        ({"user": "guest", "password": "g", "database": "syscdcv1"}, -387),
    ],
)
def test_a_connection_is_refused_with(
    server: EmulatedServer,
    client: RawClient,
    connect: Connect,
    settings: dict[str, str],
    native: int,
) -> None:
    with pytest.raises(Refused) as refused:
        connect(server, **settings)
    assert refused.value.native == native


def test_a_user_without_the_right_does_not_find_the_functions(
    server: EmulatedServer, client: RawClient, connect: Connect
) -> None:
    guest = connect(server, user="guest", password="g", database="stores")
    with pytest.raises(Refused) as refused:
        guest.rows("execute function syscdcv1:informix.cdc_closesess(1)")
    assert refused.value.native == -674


def test_a_password_in_braces_may_hold_a_semicolon(
    server: EmulatedServer, client: RawClient, connect: Connect
) -> None:
    server.users["guest"] = "a;b}c"
    connect(server, user="guest", password="a;b}c", database="stores")


def test_a_connection_that_ends_frees_its_session(server: EmulatedServer, client: RawClient) -> None:
    client.open(timeout=-1)
    client.activate()
    assert len(server.sessions()) == 1
    client.close()
    for _ in range(100):
        if not server.sessions():
            break
        time.sleep(0.02)
    assert server.sessions() == {}


def test_disconnecting_all_breaks_waiting_reads(server: EmulatedServer) -> None:
    with ListeningServer(server) as listening:
        client = RawClient(listening.port)
        client.open(timeout=-1)
        client.activate()
        listening.disconnect_all()
        with pytest.raises((EOFError, ConnectionError)):
            client.read()
        client.close()
        again = RawClient(listening.port)
        assert again.open() == 2
        again.close()


def test_bytes_that_are_no_request_end_the_connection(server: EmulatedServer, connect: Connect) -> None:
    client = connect(server)
    client.caller.send("dead beef 000c")
    with pytest.raises((EOFError, ConnectionError)):
        client.caller.answer()
