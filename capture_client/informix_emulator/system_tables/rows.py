"""The rows of the system tables, in syscdcv1, in sysmaster and in every database.

Each table is a function from the server (and the database) to its rows, called at each query. Sources:
chapter 4 of the CDC guide and the system catalog manual; of sysmaster only what clients are known to
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..column_types.encoding import EmulatedType
from ..locks import NO_SESSION
from ..log import codes
from ..log.logical_log import LogicalLog
from ..server import CDC_DATABASE, SYSTEM_DATABASE, EmulatedServer
from ..tables.tables import Capture, Database, EmulatedTable
from . import constraints
from .columns import SYSTEM_TABLES, columns_of

_Value = str | int | None
CatalogRow = dict[str, _Value]
_NOT_NULL = 0x100
_ROW_LOGGING_FLAG = 0x04000000  # sysptnhdr.flags: the partition is logged with whole rows
_TABLE_TYPES = {"view": "V", "synonym": "S"}  # SQL Reference, systables
_RAW_FLAG = 0x10  # systables.flags of a raw table


def find_rows(
    server: EmulatedServer, database: str, table: str
) -> Callable[[], list[CatalogRow]] | None:
    """Return what makes the rows of a system table, or None if the database has no such table."""
    make = _TABLES.get((database, table)) or _TABLES.get(("", table))
    if make is None or database not in server.databases:
        return None
    return lambda: list(make(server, server.databases[database]))


def _versions(_server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    yield {"majvers": 1, "minvers": 1}


def _record_types(_server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    for number, (name, text) in codes.RECORD_TYPES.items():
        yield {"recnum": number, "recname": name[: codes.NAME_LENGTH], "recdesc": text}


def _error_codes(_server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    for name, (number, text) in codes.ERRORS.items():
        yield {"errcode": number, "errname": name[: codes.NAME_LENGTH], "errdesc": text}


def _cdc_sessions(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    for session in server.sessions().values():
        yield {
            "sessid": session.id,
            "majvers": 1,
            "minvers": 1,
            "seqnum": 0,
            "timeout": session.timeout,
            "createtime": session.created,
            "flags": 0,
            "status": 0,
            "errcode": session.error,
            "errutc": 0,
        }


def _cdc_tables(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    for session in server.sessions().values():
        for capture in session.captures.values():
            yield _cdc_table(session.id, capture)


def _cdc_table(session_id: int, capture: Capture) -> CatalogRow:
    name = capture.table.name
    fixed_bytes, fixed_count, variable_count = capture.counts
    fixed_names, variable_names = capture.names
    return {
        "sessid": session_id,
        "dbname": name.database,
        "tablename": name.table,
        "owner": name.owner,
        "seqnum": 0,
        "startutc": capture.started,
        "userdata": capture.user_data,
        "fixedbytes": fixed_bytes,
        "numfixed": fixed_count,
        "fixedcols": fixed_names,
        "numvar": variable_count,
        "varcols": variable_names,
        "flags": 0,
        "status": 0,
    }


def _logs(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    """Yield the log files; which pages count as used is the server's choice.

    Where asking ends the page, uniqid << 32 | used << 12 lies after every record so far and before the
    next one. Where begun pages count, the next record may lie below; where only full ones do, records
    so far may lie above.
    """
    log = server.log
    with log.changed:
        log.current.used_pages = _USED_PAGES[server.used_pages](log)
        for place, file in enumerate(log.files):
            is_current = int(file is log.current)
            yield _log(log, place, file.number, file.used_pages, is_used=1, is_current=is_current)
        for place in range(len(log.files), log.count):  # never used yet
            yield _log(log, place, 0, 0)


_USED_PAGES: dict[str, Callable[[LogicalLog], int]] = {
    "flushed": LogicalLog.flush_page,
    "begun": LogicalLog.begun_pages,
    "full": LogicalLog.full_pages,
}


def _log(
    log: LogicalLog, place: int, uniqid: int, used: int, is_used: int = 0, is_current: int = 0
) -> CatalogRow:
    return {
        "number": place + 1,
        "uniqid": uniqid,
        "size": log.pages,
        "used": used,
        "is_used": is_used,
        "is_current": is_current,
    }


def _log_fill_times(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    with server.log.changed:
        for file in server.log.files:
            yield {"uniqid": file.number, "filltime": file.filled_at}


def _dbspaces(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    yield {"dbsnum": 1, "name": "rootdbs", "pagesize": server.log.page_bytes}


def _transactions(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    with server.log.changed:
        keeper = server.row_keeper
        for transaction in server.open_transactions.values():
            owner = keeper.owner_of(transaction) if keeper else NO_SESSION
            yield {
                "tx_id": transaction.id,
                "tx_addr": _address(_TRANSACTIONS_AT, transaction.id),
                "tx_logbeg": transaction.begin_sequence >> 32,
                "tx_loguniq": server.log.current.number,
                "tx_owner": _address(_SESSIONS_AT, owner) if owner else 0,
            }


# where a server has its tables of transactions and of sessions in memory: our choice
_TRANSACTIONS_AT, _SESSIONS_AT = 0x44000000, 0x45000000
_ENTRY_BYTES = 0x400


def _address(start: int, number: int) -> int:
    return start + number * _ENTRY_BYTES


def _sql_sessions(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    for session in server.row_keeper.open_sessions() if server.row_keeper else ():
        yield {
            "address": _address(_SESSIONS_AT, session.number),
            "sid": session.number,
            "username": session.user,
            "hostname": "localhost",
            "pid": 0,
        }


def _locks(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    for lock in server.row_keeper.held_locks() if server.row_keeper else ():
        yield {
            "dbsname": lock.database,
            "tabname": lock.table,
            "rowidlk": lock.row,
            "keynum": 0,
            "type": lock.type,
            "owner": lock.owner,
            "waiter": lock.waiter or None,
        }


def _databases(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    for database in server.databases.values():
        yield {
            "name": database.name,
            "partnum": 0,
            "owner": server.owner,
            "created": "01/01/2024",
            "is_nls": 0,
            "is_case_insens": int(database.ignores_case),
            "flags": 0,
            "is_logging": int(database.is_logged),
            "is_buff_log": int(database.is_buffered),
            "is_ansi": int(database.is_ansi),
        }


def _ha_type(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    kind, primary = server.ha_role
    yield {"ha_type": kind, "ha_primary": primary}


def _configuration(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    for number, (name, value) in enumerate(server.configuration.items()):
        yield {"cf_id": number, "cf_name": name, "cf_effective": value}


def _users(server: EmulatedServer, database: Database) -> Iterator[CatalogRow]:
    """Yield who may do what in a database; all but the owner have been granted it."""
    yield {"username": server.owner, "usertype": "D"}
    if database.name == CDC_DATABASE:
        for user in server.cdc_users - {server.owner}:
            yield {"username": user, "usertype": server.cdc_user_type}


def _locales(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    for database in server.databases.values():
        yield {"dbs_dbsname": database.name, "dbs_collate": database.locale}


def _partitions(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    for database in server.databases.values():
        for table in database.tables.values():
            flags = _ROW_LOGGING_FLAG if table.full_row_logging else 0
            oldest, newest = table.versions
            yield {
                "partnum": table.partnum,
                "flags": 0x2 | flags,
                "created": int(table.created_at),
                "pta_oldvers": oldest,
                "pta_newvers": newest,
                **_serial_counters(table),
            }


def _serial_counters(table: EmulatedTable) -> dict[str, int]:
    """Return the counter of each kind of serial column; without one, that it has not begun."""
    spellings = {column.type.spelling for column in table.columns}
    columns = {"serialv": "serial", "cur_serial8": "serial8", "cur_bigserial": "bigserial"}
    return {
        name: table.last_serials[spelling] if spelling in spellings else 1
        for name, spelling in columns.items()
    }


def _partition_names(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    for database in server.databases.values():
        for table in database.tables.values():
            yield {
                "partnum": table.partnum,
                "dbsname": database.name,
                "owner": table.name.owner,
                "tabname": table.name.table,
                "collate": database.locale,
            }


def _partition_profiles(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    for database in server.databases.values():
        for table in database.tables.values():
            yield {
                "dbsname": database.name,
                "tabname": table.name.table,
                "partnum": table.partnum,
                "lockreqs": 0,
                "isreads": 0,
                "iswrites": table.written[codes.INSERT],
                "isrewrites": table.written[codes.UPDAFT],
                "isdeletes": table.written[codes.DELETE],
            }


def _tables(server: EmulatedServer, database: Database) -> Iterator[CatalogRow]:
    for tabid, name in enumerate(SYSTEM_TABLES, 1):
        count = len(columns_of(name, "utf-8"))
        yield {**_table_row(name, server.owner, tabid), "partnum": 0x00100001 + tabid, "ncols": count}
    # IBM's JDBC driver asks for the site of the first and for the flags of the last
    for name, tabid in ((" GL_COLLATE", 90), (" GL_CTYPE", 91), (" VERSION", 92)):
        yield {**_table_row(name, server.owner, tabid), "tabtype": "", "site": database.locale}
    for table in database.tables.values():
        yield {
            **_table_row(table.name.table, table.name.owner, table.tabid),
            "partnum": table.partnum,
            "created": table.created,
            "tabtype": _TABLE_TYPES.get(table.kind, "T"),
            "flags": _RAW_FLAG if table.kind == "raw" else 0,
            "locklevel": "P" if table.locks_pages else "R",
            "ncols": len(table.columns),
            "nindexes": len(constraints.indexes_of(table)),
            "rowsize": table.fixed_bytes,
        }


def _table_row(name: str, owner: str, tabid: int) -> CatalogRow:
    return {
        "tabname": name,
        "owner": owner,
        "partnum": 0,
        "tabid": tabid,
        "ncols": 0,
        "created": "01/01/2024",
        "tabtype": "T",
        "flags": 0,
        "nindexes": 0,
        "nrows": 0,
        "version": 0x00010003,
        "locklevel": "R",
        "type_xid": 0,
        "am_id": 0,
        "pagesize": 2048,
    }


def _columns(_server: EmulatedServer, database: Database) -> Iterator[CatalogRow]:
    for tabid, name in enumerate(SYSTEM_TABLES, 1):
        for number, (column, kind) in enumerate(columns_of(name, "utf-8"), 1):
            yield _column(tabid, number, column, kind, not_null=False)
    for table in database.tables.values():
        for number, each in enumerate(table.columns, 1):
            row = _column(table.tabid, number, each.name, each.type, not_null=each.not_null)
            if each.name in table.attributes:
                row["colattr"] = table.attributes[each.name]
            yield row


def _column(tabid: int, number: int, name: str, kind: EmulatedType, *, not_null: bool) -> CatalogRow:
    return {
        "colname": name,
        "tabid": tabid,
        "colno": number,
        "coltype": kind.coltype | (_NOT_NULL if not_null else 0),
        "collength": kind.collength,
        "extended_id": kind.extended_id,
        "colattr": 0,
    }


def _extended_types(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    for number, name, mode, length in _EXTENDED_TYPES:
        yield {
            "extended_id": number,
            "mode": mode,
            "owner": server.owner,
            "name": name,
            "type": 40 if mode == "B" and name == "lvarchar" else 41,
            "source": 0,
            "maxlen": length,
            "length": length,
            "byvalue": "f",
            "cannothash": "f",
            "align": 4,
            "locator": 0,
        }


# SQL Reference, sysxtdtypes; extended_id as in syscolumns
_EXTENDED_TYPES = (
    (1, "lvarchar", "B", 2048),
    (5, "boolean", "B", 1),
    (10, "blob", "B", 72),
    (11, "clob", "B", 72),
)


def _environment(server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    # IBM's change-stream client asks for it before it opens a session.
    yield {"env_id": 1, "env_name": "INFORMIXSERVER", "env_value": server.name}


def _dual(_server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    yield {"dummy": "X"}


def _nothing(_server: EmulatedServer, _database: Database) -> Iterator[CatalogRow]:
    yield from ()


_TABLES: dict[tuple[str, str], Callable[[EmulatedServer, Database], Iterator[CatalogRow]]] = {
    (CDC_DATABASE, "syscdcvers"): _versions,
    (CDC_DATABASE, "syscdcrectypes"): _record_types,
    (CDC_DATABASE, "syscdcerrcodes"): _error_codes,
    (CDC_DATABASE, "syscdcsess"): _cdc_sessions,
    (CDC_DATABASE, "syscdctabs"): _cdc_tables,
    (SYSTEM_DATABASE, "syslogs"): _logs,
    (SYSTEM_DATABASE, "syslogfil"): _log_fill_times,
    (SYSTEM_DATABASE, "sysdbspaces"): _dbspaces,
    (SYSTEM_DATABASE, "systrans"): _transactions,
    (SYSTEM_DATABASE, "sysrstcb"): _sql_sessions,
    (SYSTEM_DATABASE, "syssessions"): _sql_sessions,
    (SYSTEM_DATABASE, "syslocks"): _locks,
    (SYSTEM_DATABASE, "sysha_type"): _ha_type,
    (SYSTEM_DATABASE, "sysconfig"): _configuration,
    (SYSTEM_DATABASE, "sysdatabases"): _databases,
    (SYSTEM_DATABASE, "sysdbslocale"): _locales,
    (SYSTEM_DATABASE, "sysptnhdr"): _partitions,
    (SYSTEM_DATABASE, "systabnames"): _partition_names,
    (SYSTEM_DATABASE, "sysptprof"): _partition_profiles,
    (SYSTEM_DATABASE, "sysenv"): _environment,
    (SYSTEM_DATABASE, "sysdual"): _dual,
    ("", "sysindexes"): constraints.indexes,
    ("", "sysxtdtypes"): _extended_types,
    ("", "systables"): _tables,
    ("", "syscolumns"): _columns,
    ("", "sysconstraints"): constraints.constraints,
    ("", "sysobjstate"): constraints.object_states,
    ("", "sysreferences"): constraints.references,
    ("", "sysusers"): _users,
    ("", "sysfragments"): _nothing,  # the emulator's tables are not fragmented
    ("", "syssynonyms"): _nothing,  # the guide: not used any more
}
