"""The columns of the system tables, with their types.

They are those of the SQL Reference's chapter on the system catalog, the Administrator's Reference on
sysmaster, and chapter 4 of the CDC guide. Trailing columns that no client reads are left out.
"""

from __future__ import annotations

from functools import lru_cache

from ..column_types.column_list import parse_column_list
from ..column_types.encoding import EmulatedType, column_type

_PARTS = ", ".join(f"part{n} smallint" for n in range(1, 17))

_COLUMNS = {
    "syscdcvers": "majvers integer, minvers integer",
    "syscdcrectypes": "recnum integer, recname varchar(16), recdesc varchar(127)",
    "syscdcerrcodes": "errcode integer, errname varchar(16), errdesc varchar(127)",
    "syscdcsess": "sessid integer, majvers integer, minvers integer, seqnum bigint, timeout integer,"
    " createtime integer, flags integer, status integer, errcode integer, errutc integer",
    "syscdctabs": "sessid integer, dbname varchar(128), tablename varchar(128), owner varchar(32),"
    " seqnum bigint, startutc integer, userdata integer, fixedbytes integer, numfixed integer,"
    " fixedcols lvarchar(32000), numvar integer, varcols lvarchar(32000), flags integer,"
    " status integer",
    "syslogs": "number smallint, uniqid integer, size integer, used integer, is_used integer,"
    " is_current integer, is_backed_up integer, is_new integer, is_archived integer, is_temp integer,"
    " flags smallint",
    "syslogfil": "uniqid integer, filltime integer",
    "sysdbspaces": "dbsnum integer, name varchar(128), pagesize integer",
    # not documented; its names and the join by tx_owner = sysrstcb.address are those of scripts of DBAs
    # that were tried with 11.70 and 12.10 (Advanced DataTools, log_position.sql)
    "systrans": "tx_id integer, tx_addr bigint, tx_logbeg integer, tx_loguniq integer, tx_owner bigint",
    "sysrstcb": "address bigint, sid integer, username char(32)",
    "syssessions": "sid integer, username char(32), uid integer, pid integer, hostname char(16)",
    "syslocks": "dbsname char(128), tabname char(128), rowidlk integer, keynum smallint, type char(4),"
    " owner integer, waiter integer",
    "sysha_type": "ha_type integer, ha_primary varchar(128)",
    "sysconfig": "cf_id integer, cf_name varchar(128), cf_flags integer, cf_original varchar(255),"
    " cf_effective varchar(255), cf_default varchar(255)",
    "sysdatabases": "name varchar(128), partnum integer, owner char(32), created date,"
    " is_logging integer, is_buff_log integer, is_ansi integer, is_nls integer,"
    " is_case_insens integer, flags smallint",
    "sysdbslocale": "dbs_dbsname varchar(128), dbs_collate varchar(32)",
    "sysptnhdr": "partnum integer, flags integer, created integer, pta_oldvers integer,"
    " pta_newvers integer, serialv integer, cur_serial8 int8, cur_bigserial bigint",
    "systabnames": "partnum integer, dbsname varchar(128), owner char(32), tabname varchar(128),"
    " collate char(32)",
    "sysptprof": "dbsname varchar(128), tabname varchar(128), partnum integer, lockreqs integer,"
    " isreads integer, iswrites integer, isrewrites integer, isdeletes integer",
    "sysenv": "env_id integer, env_name varchar(128), env_value varchar(255)",
    "sysdual": "dummy char(1)",
    "systables": "tabname varchar(128), owner char(32), partnum integer, tabid serial,"
    " rowsize smallint, ncols smallint, nindexes smallint, nrows float, created date,"
    " version integer, tabtype char(1),"
    " locklevel char(1), npused float, fextsize integer, nextsize integer, flags smallint,"
    " site varchar(128), dbname varchar(128), type_xid integer, am_id integer, pagesize integer",
    "syscolumns": "colname varchar(128), tabid integer, colno smallint, coltype smallint,"
    " collength smallint, colmin integer, colmax integer, extended_id integer, seclabelid integer,"
    " colattr smallint",
    "sysconstraints": "constrid serial, constrname varchar(128), owner char(32), tabid integer,"
    " constrtype char(1), idxname varchar(128), collation char(32)",
    "sysindexes": "idxname varchar(128), owner char(32), tabid integer, idxtype char(1),"
    f" clustered char(1), {_PARTS}, levels smallint, leaves float, nunique float, clust float,"
    " idxflags integer",
    "sysreferences": 'constrid integer, "primary" integer, ptabid integer, updrule char(1),'
    " delrule char(1), matchtype char(1), pendant char(1)",
    "sysxtdtypes": "extended_id serial, mode char(1), owner char(32), name varchar(128), type smallint,"
    " source integer, maxlen integer, length integer, byvalue char(1), cannothash char(1),"
    " align smallint, locator integer",
    "syssynonyms": "owner char(32), synname varchar(128), created date, tabid integer",
    "sysusers": "username char(32), usertype char(1), priority smallint, password char(16),"
    " defrole char(32)",
    "sysfragments": "fragtype char(1), tabid integer, indexname varchar(128), partn integer",
    "sysobjstate": "objtype char(1), owner varchar(32), name varchar(128), tabid integer,"
    " state char(1)",
}


# The tables of every database in the order of their numbers. Live servers have systables as 1,
# syscolumns as 2, and all up to 10 (tests of informix-driver 2026.9.3); the others are our choice.
SYSTEM_TABLES = (
    *("systables", "syscolumns", "sysindexes", "sysusers", "syssynonyms", "sysconstraints"),
    *("sysreferences", "sysfragments", "sysobjstate", "sysxtdtypes"),
)


@lru_cache(maxsize=256)
def columns_of(table: str, codec: str) -> tuple[tuple[str, EmulatedType], ...]:
    """Return names and types of a system table's columns."""
    definitions = parse_column_list(_COLUMNS[table])
    return tuple((d.name, column_type(d.type, codec)) for d in definitions)
