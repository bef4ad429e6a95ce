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
API_VERSION = "SELECT majvers, minvers FROM syscdcv1:informix.syscdcvers"
RECORD_TYPES = "SELECT recnum, recname FROM syscdcv1:informix.syscdcrectypes"
ERROR_CODES = "SELECT errcode, errname, errdesc FROM syscdcv1:informix.syscdcerrcodes"
SESSIONS = (
    "SELECT sessid, majvers, minvers, timeout, createtime, errcode FROM syscdcv1:informix.syscdcsess"
)
SESSION_TABLES = "SELECT * FROM syscdcv1:informix.syscdctabs"

# the read function of ODBC: descriptor in, buffer out
LO_READ = "{call ifx_lo_read(?, ?)}"

# the server: name, clock, log
SERVER_NAME = "SELECT DBSERVERNAME FROM informix.systables WHERE tabid = 1"
SERVER_CLOCK = "SELECT dbinfo('utc_current') FROM informix.systables WHERE tabid = 1"
CURRENT_LOG = "SELECT uniqid, used FROM sysmaster:informix.syslogs WHERE is_current = 1"
OLDEST_LOG = "SELECT MIN(uniqid) FROM sysmaster:informix.syslogs WHERE uniqid > 0"  # 0: never used
LOG_FILES = "SELECT uniqid, size, used, is_current FROM sysmaster:informix.syslogs"
LOG_FILL_TIMES = "SELECT uniqid, filltime FROM sysmaster:informix.syslogfil"
BASE_PAGE_BYTES = "SELECT pagesize FROM sysmaster:informix.sysdbspaces WHERE dbsnum = 1"  # rootdbs
SERVER_VERSION = "SELECT dbinfo('version', 'full') FROM informix.systables WHERE tabid = 1"
HA_ROLE = "SELECT ha_type, ha_primary FROM sysmaster:informix.sysha_type"
PARAMETER = "SELECT cf_effective FROM sysmaster:informix.sysconfig WHERE cf_name = ?"
OPEN_TRANSACTIONS = "SELECT tx_id, tx_logbeg FROM sysmaster:informix.systrans WHERE tx_logbeg > 0"

# one database and its tables
DATABASE_LOGGING = (
    "SELECT is_logging, is_buff_log, is_ansi FROM sysmaster:informix.sysdatabases WHERE name = ?"
)
DATABASE_LOCALE = "SELECT dbs_collate FROM sysmaster:informix.sysdbslocale WHERE dbs_dbsname = ?"
# asked about up to a hundred tables at once (catalog/many_at_once.py)
TABLE = (
    "SELECT tabname, owner, tabid, partnum, created, tabtype, flags FROM informix.systables"
    " WHERE tabname IN (?)"
)
# to tell what there is where a name is not found; tabid 100 is the first of a user's tables
# (SQL Reference, "systables")
DATABASES = "SELECT name FROM sysmaster:informix.sysdatabases"
CAPTURABLE_TABLES = (
    "SELECT owner, tabname, flags FROM informix.systables WHERE tabid > 99 AND tabtype = 'T'"
)
TABLES = "SELECT owner, tabname FROM informix.systables WHERE tabid > 99 AND tabtype = 'T'"
COLUMNS = (
    "SELECT tabid, colname, coltype, collength, extended_id FROM informix.syscolumns"
    " WHERE tabid IN (?) ORDER BY tabid, colno"
)
PRIMARY_KEY = "SELECT tabid FROM informix.sysconstraints WHERE constrtype = 'P' AND tabid IN (?)"
# of a snapshot: keys, which columns may be NULL, how rows are locked (SQL Reference, "sysconstraints",
# "sysindexes", "sysobjstate": D is disabled, "syscolumns", "systables")
CONSTRAINTS = (
    "SELECT tabid, constrtype, constrname, idxname FROM informix.sysconstraints"
    " WHERE constrtype IN ('P', 'U') AND tabid IN (?)"
)
UNIQUE_INDEXES = (
    "SELECT tabid, idxname, part1, part2, part3, part4, part5, part6, part7, part8, part9, part10,"
    " part11, part12, part13, part14, part15, part16 FROM informix.sysindexes"
    " WHERE idxtype IN ('U', 'u') AND tabid IN (?)"
)
DISABLED = (
    "SELECT tabid, objtype, name FROM informix.sysobjstate"
    " WHERE objtype IN ('C', 'I') AND state = 'D' AND tabid IN (?)"
)
COLUMN_NUMBERS = "SELECT tabid, colno, colname, coltype FROM informix.syscolumns WHERE tabid IN (?)"
ROW_LOCKS = "SELECT tabid, locklevel, nrows FROM informix.systables WHERE tabid IN (?)"
# Administrator's Reference, "sysdatabases": for NCHAR and NVARCHAR
IGNORES_CASE = "SELECT is_case_insens FROM sysmaster:informix.sysdatabases WHERE name = ?"
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
LOCK_HOLDERS = "SELECT owner, type FROM sysmaster:informix.syslocks WHERE dbsname = ? AND tabname = ?"
CDC_USER_TYPE = "SELECT usertype FROM syscdcv1:informix.sysusers WHERE username = ?"
FRAGMENTS = "SELECT tabid, partn FROM informix.sysfragments WHERE fragtype = 'T' AND tabid IN (?)"
PARTITION_CREATED = "SELECT partnum, created FROM sysmaster:informix.sysptnhdr WHERE partnum IN (?)"
PARTITION_VERSIONS = (
    "SELECT partnum, pta_oldvers, pta_newvers FROM sysmaster:informix.sysptnhdr WHERE partnum IN (?)"
)
PARTITION_FLAGS = "SELECT partnum, flags FROM sysmaster:informix.sysptnhdr WHERE partnum IN (?)"
# of all tables of the server: which have full row logging on (Administrator's Reference, "systabnames")
ALL_PARTITION_FLAGS = "SELECT partnum, flags FROM sysmaster:informix.sysptnhdr"
PARTITION_NAMES = (
    "SELECT partnum, dbsname, owner, tabname FROM sysmaster:informix.systabnames WHERE partnum IN (?)"
)
# for estimates: sizes as of UPDATE STATISTICS, and counters since a table was opened (SQL Reference,
# "systables"; Administrator's Reference, "sysptprof")
TABLE_SIZES = "SELECT tabid, rowsize, nrows FROM informix.systables WHERE tabid IN (?)"
PARTITION_COUNTERS = (
    "SELECT partnum, iswrites, isrewrites, isdeletes FROM sysmaster:informix.sysptprof"
    " WHERE partnum IN (?)"
)
