from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.conftest import NOW, ORDERS
from emulator.raw_client import RawClient, Refused
from informix_emulator import EmulatedServer

Connect = Callable[..., RawClient]


@pytest.fixture
def cdc(server: EmulatedServer, connect: Connect) -> RawClient:
    return connect(server, database="syscdcv1", extra=";DB_LOCALE=en_US.819")


@pytest.fixture
def stores(server: EmulatedServer, connect: Connect) -> RawClient:
    return connect(server, database="stores")


def position(client: RawClient) -> int:
    ((log, pages),) = client.rows(
        "SELECT uniqid, used FROM sysmaster:informix.syslogs WHERE is_current = 1"
    )
    return int(log or "") << 32 | int(pages or "") << 12


@pytest.mark.slow
def test_the_position_in_syslogs_lies_between_the_records_before_and_after_it(
    server: EmulatedServer, cdc: RawClient
) -> None:
    for _ in range(200):
        tx = server.begin()
        last = tx.insert(ORDERS, {"id": 1})
        here = position(cdc)
        assert last < here == position(cdc) < tx.commit()


def test_the_oldest_log_is_the_least_of_syslogs_but_for_those_never_used(
    server: EmulatedServer, cdc: RawClient
) -> None:
    server.switch_log()
    assert cdc.rows("select min(uniqid) from sysmaster:syslogs where uniqid > 0") == [("1",)]
    assert cdc.rows("select max(uniqid), count(*) from sysmaster:syslogs") == [("2", "16")]
    assert cdc.rows("select count(*) from sysmaster:syslogs where is_used = 0") == [("14",)]


def test_a_full_log_says_when_it_was_filled(server: EmulatedServer, cdc: RawClient) -> None:
    server.switch_log()
    fill_times = cdc.rows("select uniqid, filltime from sysmaster:informix.syslogfil")
    assert fill_times == [("1", str(NOW)), ("2", "0")]


def test_a_star_stands_for_every_column(cdc: RawClient) -> None:
    assert cdc.rows("select * from sysmaster:sysdbspaces") == [("1", "rootdbs", "2048")]
    assert cdc.rows("select * from syscdctabs") == []


def test_open_transactions_are_in_systrans(server: EmulatedServer, cdc: RawClient) -> None:
    server.begin()
    server.begin().commit()
    statement = "SELECT tx_id FROM sysmaster:informix.systrans WHERE tx_logbeg > 0"
    assert cdc.rows(statement) == [("20",)]


def test_name_and_clock_of_the_server_are_told(cdc: RawClient) -> None:
    one_row = "FROM informix.systables WHERE tabid = 1"
    assert cdc.rows(f"SELECT DBSERVERNAME {one_row}") == [("informix",)]
    assert cdc.rows(f"SELECT dbinfo('utc_current') {one_row}") == [(str(NOW),)]


def test_the_names_in_the_cdc_database_are_cut_at_16_characters(cdc: RawClient) -> None:
    types = dict(cdc.rows("SELECT recnum, recname FROM informix.syscdcrectypes"))
    assert types["200"] == "CDC_REC_TABSCHEM"
    errors = cdc.rows("SELECT errcode, errname, errdesc FROM informix.syscdcerrcodes")
    assert ("-83711", "CDC_E_TABNOTCAPT") in [row[:2] for row in errors]
    assert len({row[1] for row in errors}) == len(errors)
    assert all(0 < len(row[2] or "") <= 127 for row in errors)
    assert cdc.rows("SELECT majvers, minvers FROM informix.syscdcvers") == [("1", "1")]
    rows = cdc.rows('SELECT recnum FROM syscdcrectypes WHERE recname LIKE "CDC%"')
    assert len(rows) == 12


def test_the_text_of_an_error_is_told_by_its_name(cdc: RawClient) -> None:
    statement = "EXECUTE FUNCTION informix.cdc_errortext(?, ?)"
    for locale in (None, "", "en_us.033", "en_us.819"):
        ((text,),) = cdc.rows(statement, "CDC_E_TABCAPTURED", locale)
        assert "captures this table" in (text or "")
    for name, locale, native in [("CDC_E_X", "", 1824), ("CDC_E_LSN", "here", 23109)]:
        with pytest.raises(Refused) as refused:
            cdc.rows(statement, name, locale)
        assert abs(refused.value.native) == native


def test_only_the_owner_sees_the_sessions_until_another_is_granted_it(
    server: EmulatedServer, connect: Connect
) -> None:
    server.users["joe"], server.cdc_users = "j", frozenset({"informix", "joe"})
    joe = connect(server, user="joe", password="j")
    with pytest.raises(Refused) as refused:
        joe.rows("SELECT sessid FROM syscdcv1:informix.syscdcsess")
    assert refused.value.native == -272
    assert joe.rows("SELECT majvers FROM syscdcv1:informix.syscdcvers") == [("1",)]
    server.session_readers.add("joe")
    assert joe.rows("SELECT sessid FROM syscdcv1:informix.syscdcsess") == []


@pytest.mark.parametrize(
    ("is_there", "native"), [(True, -387), (False, -329)], ids=["without a right", "not there"]
)
def test_the_cdc_database_is_out_of_reach_by_its_name_too(
    server: EmulatedServer, connect: Connect, is_there: bool, native: int
) -> None:
    server.users["guest"] = "g"
    if not is_there:
        del server.databases["syscdcv1"]
    guest = connect(server, user="guest", password="g")
    with pytest.raises(Refused) as refused:
        guest.rows("SELECT majvers FROM syscdcv1:informix.syscdcvers")
    assert refused.value.native == native


def test_the_catalog_describes_a_table(server: EmulatedServer, stores: RawClient) -> None:
    server.create_table(
        "stores:informix.t",
        "id serial, a decimal(10,2) not null, b varchar(20,4), c datetime year to fraction(3), "
        "d interval day(3) to second, e boolean, f lvarchar(99), g decimal(5), h nchar(7)",
    )
    ((tabid, partnum, created, kind, flags),) = stores.rows(
        "SELECT tabid, partnum, created, tabtype, flags FROM informix.systables"
        " WHERE tabname = ? AND owner = ?",
        "t",
        "informix",
    )
    assert (tabid, created, kind, flags) == ("101", "11/14/2023", "T", "0")
    columns = stores.rows(
        "SELECT colname, coltype, collength, extended_id FROM informix.syscolumns"
        " WHERE tabid = ? ORDER BY colno",
        tabid,
    )
    assert columns == [
        ("id", "262", "4", "0"),
        ("a", "261", "2562", "0"),
        ("b", "13", "1044", "0"),
        ("c", "10", "4365", "0"),
        ("d", "14", "2378", "0"),
        ("e", "41", "1", "5"),
        ("f", "40", "99", "1"),
        ("g", "5", "1535", "0"),
        ("h", "15", "7", "0"),
    ]
    flag = "SELECT flags FROM sysmaster:informix.sysptnhdr WHERE partnum = ?"
    fragments = "SELECT partn FROM informix.sysfragments WHERE tabid = ? AND fragtype = 'T'"
    assert stores.rows(fragments, tabid) == []
    assert not int(stores.rows(flag, partnum)[0][0] or "") & 0x04000000
    server.set_full_row_logging("stores:informix.t", True)
    assert int(stores.rows(flag, partnum)[0][0] or "") & 0x04000000
    server.drop_table("stores:informix.t")
    assert stores.rows(flag, partnum) == []


def test_databases_tell_their_logging_and_their_locale(server: EmulatedServer, cdc: RawClient) -> None:
    server.create_database("old", logged=False, locale="de_de.8859-1")
    logging = "SELECT is_logging FROM sysmaster:informix.sysdatabases WHERE name = ?"
    assert [cdc.rows(logging, name) for name in ("stores", "old", "no")] == [[("1",)], [("0",)], []]
    locale = "SELECT dbs_collate FROM sysmaster:informix.sysdbslocale WHERE dbs_dbsname = ?"
    assert cdc.rows(locale, "stores") == [("en_US.57372",)]
    assert cdc.rows(locale, "old") == [("de_DE.819",)]


@pytest.mark.parametrize(
    ("statement", "native"),
    [
        ("SELECT a FROM nothing", -206),
        ("SELECT recnum FROM sysmaster:syscdcrectypes", -206),
        ("SELECT nothing FROM systables", -217),
        ("SELECT tabid FROM systables WHERE nothing = 1", -217),
        ("DELETE FROM systables", -201),
        ("SELECT a + 1 FROM systables", -217),
        ("SELECT tabid FROM systables WHERE tabid BETWEEN 1", -201),
        ("SELECT tabid, min(tabid) FROM systables", -294),
        ("SELECT tabid FROM systables WHERE tabid = ?", -254),
        ("SELECT tabid FROM systables WHERE tabid = 'x'", -1213),
    ],
)
def test_a_statement_is_refused_with(cdc: RawClient, statement: str, native: int) -> None:
    with pytest.raises(Refused) as refused:
        cdc.rows(statement)
    assert refused.value.native == native


def test_blanks_and_case_of_a_statement_do_not_matter(cdc: RawClient) -> None:
    assert cdc.rows("select\n  MAJVERS ,minvers\tfrom  SysCdcVers ; ") == [("1", "1")]


def test_what_a_server_is_and_how_it_is_configured_is_told(
    server: EmulatedServer, cdc: RawClient
) -> None:
    server.ha_role = (2, "main")
    assert cdc.rows("SELECT ha_type, ha_primary FROM sysmaster:informix.sysha_type") == [("2", "main")]
    statement = "SELECT cf_effective FROM sysmaster:sysconfig WHERE cf_name = 'LTXHWM'"
    assert cdc.rows(statement) == [("70",)]
    server.configuration["LTXHWM"] = "50"
    assert cdc.rows(statement) == [("50",)]


def test_a_database_says_how_it_is_logged(server: EmulatedServer, cdc: RawClient) -> None:
    server.create_database("quick", buffered=True)
    server.create_database("strict", ansi=True)
    server.create_database("loose", logged=False)
    rows = cdc.rows("SELECT name, is_logging, is_buff_log, is_ansi FROM sysmaster:sysdatabases")
    assert rows[-3:] == [("quick", "1", "1", "0"), ("strict", "1", "0", "1"), ("loose", "0", "0", "0")]


def test_primary_keys_are_constraints(server: EmulatedServer, stores: RawClient) -> None:
    server.create_table("stores:informix.a", "id integer primary key, note char(30)")
    server.create_table("stores:informix.b", 'id integer, "primary key" integer, primary key (id)')
    server.create_table("stores:informix.c", 'id integer, "no primary key" integer')
    keys = stores.rows("SELECT tabid FROM sysconstraints WHERE constrtype = 'P'")
    names = [stores.rows(f"SELECT tabname FROM systables WHERE tabid = {key}") for (key,) in keys]
    assert names == [[("a",)], [("b",)]]


def test_a_hidden_table_is_refused_for_want_of_a_right(server: EmulatedServer, cdc: RawClient) -> None:
    server.hidden_tables.add("sysconfig")
    with pytest.raises(Refused) as refused:
        cdc.rows("SELECT cf_effective FROM sysmaster:sysconfig WHERE cf_name = 'LTXHWM'")
    assert refused.value.native == -272
