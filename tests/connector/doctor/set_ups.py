"""A set-up in which nothing is wrong, to be spoilt in one place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from informix_capture_client.catalog.log_space import LogFile, LogSpace
from informix_capture_client.catalog.set_up import DatabaseLogging, HaRole
from informix_capture_client.catalog.tables import FoundTable, Table
from informix_capture_client.findings import Finding
from informix_capture_client.sql_names import TableName
from informix_capture_client.values.column_list import Column
from informix_cdc.doctor.checks import CHECKS, SetUp
from informix_cdc.doctor.security import SecurityFacts, TlsFacts
from informix_cdc.server.server_facts import (
    CdcFacts,
    DriverFacts,
    ServerFacts,
    TableFacts,
)

ORDERS = TableName("stores", "informix", "orders")
HOUR, GIB = 3600, 1024**3
NOW = 1_700_000_000

# 10 GiB of log, 1 GiB an hour: log 12 is written, 11 was filled just now.
LOG_SPACE = LogSpace(
    files=(
        LogFile(10, GIB, GIB, filled_at=NOW - HOUR),
        LogFile(11, GIB, GIB, filled_at=NOW),
        LogFile(12, GIB, 0, is_current=True),
    ),
    free_bytes=7 * GIB,
    page_bytes=2048,
)
SLOW_LOG = replace(
    LOG_SPACE, files=(replace(LOG_SPACE.files[0], filled_at=NOW - 24 * HOUR), *LOG_SPACE.files[1:])
)
SERVER = ServerFacts(
    name="ids1",
    version="IBM Informix Dynamic Server Version 14.10.FC9",
    clock=NOW,
    has_cdc_database=True,
    database_logging=DatabaseLogging(is_logged=True),
    database_locale="en_US.57372",
    cdc_locale="en_US.819",
    log_space=SLOW_LOG,
    parameters={"DYNAMIC_LOGS": 2, "LTXHWM": 70, "LTXEHWM": 80},
    ha_role=HaRole(0),
)
CDC = CdcFacts(api_version=(1, 1), user_type="D", runs_routines=True, sessions=())
TLS = TlsFacts(path="/opt/etc/conssl.cfg", entries={"SSL_KEYSTORE_FILE": "/opt/client.p12"})
SOUND = SetUp(
    database="stores",
    user="informix",
    address="db:9088",
    driver=DriverFacts("/opt/lib/cli/libthcli.so", "libthcli.so", "4.50"),
    server=SERVER,
    tables=(),
    cdc=CDC,
    security=SecurityFacts(address="db:9088", tls=TLS),
)


def examine(set_up: SetUp) -> list[Finding]:
    """Run every check."""
    return [finding for check in CHECKS for finding in check(set_up)]


def table_facts(
    *columns: tuple[str, str], name: TableName = ORDERS, kind: str = "table", **changes: Any
) -> TableFacts:
    """Return a table with these columns and nothing wrong, but for the changes."""
    named = columns or (("id", "serial"), ("name", "varchar(20,0)"))
    table = Table(name, 100, 7, "01/01/2024", tuple(Column(*column) for column in named))
    found = FoundTable(name, kind, table if kind.endswith("table") else None)
    sound = TableFacts(name, found, has_primary_key=True, logs_full_rows=True, has_pending_alter=False)
    return replace(sound, **changes)


def with_server(**changes: Any) -> SetUp:
    return replace(SOUND, server=replace(SERVER, **changes), tables=(table_facts(),))


def with_cdc(user: str = "informix", **changes: Any) -> SetUp:
    return replace(SOUND, cdc=replace(CDC, **changes), user=user, tables=(table_facts(),))


def with_tables(*tables: TableFacts, **changes: Any) -> SetUp:
    return replace(SOUND, tables=tables, **changes)


def states(set_up: SetUp, check: str) -> list[str]:
    """Return how a check ended, once per finding."""
    return [finding.state.value for finding in examine(set_up) if finding.check == check]
