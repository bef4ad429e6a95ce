"""The text of every statement we send, in one place.

Sources: the CDC guide, chapters 2 and 4, for `cdc_*` and `syscdc*`; the system catalog and sysmaster
for the rest. What no public source proves of sysmaster is listed in docs/assumptions.md.
"""

from __future__ import annotations

CDC_DATABASE = "syscdcv1"
SYSTEM_DATABASE = "sysmaster"

# chapter 2: functions; each but the last answers with one integer, negative means an error code. They
# name their database, as a capture connects to the captured one (decision 0024).
OPEN_SESSION = "EXECUTE FUNCTION syscdcv1:informix.cdc_opensess(?, ?, ?, ?, ?, ?)"
SET_FULL_ROW_LOGGING = "EXECUTE FUNCTION syscdcv1:informix.cdc_set_fullrowlogging(?, ?)"
START_CAPTURE = "EXECUTE FUNCTION syscdcv1:informix.cdc_startcapture(?, ?, ?, ?, ?)"
ACTIVATE_SESSION = "EXECUTE FUNCTION syscdcv1:informix.cdc_activatesess(?, ?)"
DEACTIVATE_SESSION = "EXECUTE FUNCTION syscdcv1:informix.cdc_deactivatesess(?)"
END_CAPTURE = "EXECUTE FUNCTION syscdcv1:informix.cdc_endcapture(?, ?, ?)"
CLOSE_SESSION = "EXECUTE FUNCTION syscdcv1:informix.cdc_closesess(?)"
RECORD_BOUNDARY = "EXECUTE FUNCTION syscdcv1:informix.cdc_recboundary(?)"
# not in a select list: Informix takes no parameter there
ERROR_TEXT = "EXECUTE FUNCTION syscdcv1:informix.cdc_errortext(?, ?)"

# chapter 4: the system database; names in these tables are cut at 16 characters
API_VERSION = "SELECT t.majvers, t.minvers FROM syscdcv1:informix.syscdcvers t"
RECORD_TYPES = "SELECT t.recnum, t.recname FROM syscdcv1:informix.syscdcrectypes t"
ERROR_CODES = "SELECT t.errcode, t.errname, t.errdesc FROM syscdcv1:informix.syscdcerrcodes t"
SESSIONS = (
    "SELECT t.sessid, t.majvers, t.minvers, t.timeout, t.createtime, t.errcode"
    " FROM syscdcv1:informix.syscdcsess t"
)
SESSION_TABLES = "SELECT * FROM syscdcv1:informix.syscdctabs"

# the read function of ODBC: descriptor in, buffer out
LO_READ = "{call ifx_lo_read(?, ?)}"

# the server: name, clock, log
SERVER_NAME = "SELECT DBSERVERNAME FROM informix.systables t WHERE t.tabid = 1"
SERVER_CLOCK = "SELECT dbinfo('utc_current') FROM informix.systables t WHERE t.tabid = 1"
CURRENT_LOG = "SELECT t.uniqid, t.used FROM sysmaster:informix.syslogs t WHERE t.is_current = 1"
OLDEST_LOG = (
    "SELECT MIN(t.uniqid) FROM sysmaster:informix.syslogs t WHERE t.uniqid > 0"  # 0: never used
)
LOG_FILES = "SELECT t.uniqid, t.size, t.used, t.is_current FROM sysmaster:informix.syslogs t"
LOG_FILL_TIMES = "SELECT t.uniqid, t.filltime FROM sysmaster:informix.syslogfil t"
BASE_PAGE_BYTES = (
    "SELECT t.pagesize FROM sysmaster:informix.sysdbspaces t WHERE t.dbsnum = 1"  # rootdbs
)
SERVER_VERSION = "SELECT dbinfo('version', 'full') FROM informix.systables t WHERE t.tabid = 1"
HA_ROLE = "SELECT t.ha_type, t.ha_primary FROM sysmaster:informix.sysha_type t"
PARAMETER = "SELECT t.cf_effective FROM sysmaster:informix.sysconfig t WHERE t.cf_name = ?"
OPEN_TRANSACTIONS = (
    "SELECT t.tx_id, t.tx_logbeg FROM sysmaster:informix.systrans t WHERE t.tx_logbeg > 0"
)

# one database and its tables
DATABASE_LOGGING = (
    "SELECT t.is_logging, t.is_buff_log, t.is_ansi FROM sysmaster:informix.sysdatabases t"
    " WHERE t.name = ?"
)
DATABASE_LOCALE = "SELECT t.dbs_collate FROM sysmaster:informix.sysdbslocale t WHERE t.dbs_dbsname = ?"
# asked about up to a hundred tables at once (catalog/many_at_once.py)
TABLE = (
    "SELECT t.tabname, t.owner, t.tabid, t.partnum, t.created, t.tabtype, t.flags"
    " FROM informix.systables t WHERE t.tabname IN (?)"
)
# to tell what there is where a name is not found; tabid 100 is the first of a user's tables
# (SQL Reference, "systables")
DATABASES = "SELECT t.name FROM sysmaster:informix.sysdatabases t"
CAPTURABLE_TABLES = (
    "SELECT t.owner, t.tabname, t.flags FROM informix.systables t"
    " WHERE t.tabid > 99 AND t.tabtype = 'T'"
)
TABLES = "SELECT t.owner, t.tabname FROM informix.systables t WHERE t.tabid > 99 AND t.tabtype = 'T'"
COLUMNS = (
    "SELECT t.tabid, t.colname, t.coltype, t.collength, t.extended_id, t.colattr"
    " FROM informix.syscolumns t"
    " WHERE t.tabid IN (?) ORDER BY t.tabid, t.colno"
)
PRIMARY_KEY = (
    "SELECT t.tabid FROM informix.sysconstraints t WHERE t.constrtype = 'P' AND t.tabid IN (?)"
)
# of a snapshot: keys, which columns may be NULL, how rows are locked (SQL Reference, "sysconstraints",
# "sysindexes", "sysobjstate": D is disabled, "syscolumns", "systables")
CONSTRAINTS = (
    "SELECT t.tabid, t.constrtype, t.constrname, t.idxname FROM informix.sysconstraints t"
    " WHERE t.constrtype IN ('P', 'U') AND t.tabid IN (?)"
)
UNIQUE_INDEXES = (
    "SELECT t.tabid, t.idxname, t.part1, t.part2, t.part3, t.part4, t.part5, t.part6, t.part7,"
    " t.part8, t.part9, t.part10, t.part11, t.part12, t.part13, t.part14, t.part15, t.part16"
    " FROM informix.sysindexes t WHERE t.idxtype IN ('U', 'u') AND t.tabid IN (?)"
)
DISABLED = (
    "SELECT t.tabid, t.objtype, t.name FROM informix.sysobjstate t"
    " WHERE t.objtype IN ('C', 'I') AND t.state = 'D' AND t.tabid IN (?)"
)
COLUMN_NUMBERS = (
    "SELECT t.tabid, t.colno, t.colname, t.coltype FROM informix.syscolumns t WHERE t.tabid IN (?)"
)
ROW_LOCKS = "SELECT t.tabid, t.locklevel, t.nrows FROM informix.systables t WHERE t.tabid IN (?)"
# Administrator's Reference, "sysdatabases": for NCHAR and NVARCHAR
IGNORES_CASE = "SELECT t.is_case_insens FROM sysmaster:informix.sysdatabases t WHERE t.name = ?"
# how a snapshot reads and marks: no writer waits for it (SQL Syntax, "SET ISOLATION", "SET LOCK MODE",
# "LOCK TABLE"); CREATE TEMP TABLE is in the log like all DDL, with or without WITH NO LOG
LAST_COMMITTED = "SET ISOLATION TO COMMITTED READ LAST COMMITTED"
LOCK_WAIT = "SET LOCK MODE TO WAIT 5"
# how a row is selected by its key: of two ways to read what is committed the one that its transactions
# allow, whatever a server makes of the second ("SET ENVIRONMENT", USELASTCOMMITTED)
NO_IMPLICIT_LAST_COMMITTED = "SET ENVIRONMENT USELASTCOMMITTED 'NONE'"
COMMITTED_READ = "SET ISOLATION TO COMMITTED READ"
SHORT_LOCK_WAIT = "SET LOCK MODE TO WAIT 1"
BEGIN_WORK = "BEGIN WORK"
COMMIT_WORK = "COMMIT WORK"
MAKE_MARKER = "CREATE TEMP TABLE informix_cdc_marker (n INTEGER) WITH NO LOG"
DROP_MARKER = "DROP TABLE informix_cdc_marker"
LOCK_HOLDERS = (
    "SELECT t.owner, t.type FROM sysmaster:informix.syslocks t WHERE t.dbsname = ? AND t.tabname = ?"
)
CDC_USER_TYPE = "SELECT t.usertype FROM syscdcv1:informix.sysusers t WHERE t.username = ?"
FRAGMENTS = (
    "SELECT t.tabid, t.partn FROM informix.sysfragments t WHERE t.fragtype = 'T' AND t.tabid IN (?)"
)
PARTITION_CREATED = (
    "SELECT t.partnum, t.created FROM sysmaster:informix.sysptnhdr t WHERE t.partnum IN (?)"
)
PARTITION_VERSIONS = (
    "SELECT t.partnum, t.pta_oldvers, t.pta_newvers FROM sysmaster:informix.sysptnhdr t"
    " WHERE t.partnum IN (?)"
)
# where a table's SERIAL columns are, when its rows have left the server
PARTITION_SERIALS = (
    "SELECT t.partnum, t.serialv, t.cur_serial8, t.cur_bigserial FROM sysmaster:informix.sysptnhdr t"
    " WHERE t.partnum IN (?)"
)
PARTITION_FLAGS = "SELECT t.partnum, t.flags FROM sysmaster:informix.sysptnhdr t WHERE t.partnum IN (?)"
# of all tables of the server: which have full row logging on (Administrator's Reference, "systabnames")
ALL_PARTITION_FLAGS = "SELECT t.partnum, t.flags FROM sysmaster:informix.sysptnhdr t"
PARTITION_NAMES = (
    "SELECT t.partnum, t.dbsname, t.owner, t.tabname FROM sysmaster:informix.systabnames t"
    " WHERE t.partnum IN (?)"
)
# for estimates: sizes as of UPDATE STATISTICS, and counters since a table was opened (SQL Reference,
# "systables"; Administrator's Reference, "sysptprof")
TABLE_SIZES = "SELECT t.tabid, t.rowsize, t.nrows FROM informix.systables t WHERE t.tabid IN (?)"
PARTITION_COUNTERS = (
    "SELECT t.partnum, t.iswrites, t.isrewrites, t.isdeletes FROM sysmaster:informix.sysptprof t"
    " WHERE t.partnum IN (?)"
)
