"""Statements that other people's clients send, as they were captured on the wire.

Rule: texts are facts of what a client sends, kept as they came but for runs of blanks. J is IBM's JDBC
driver 4.50 and 15, CS its change-stream client 1.1, DBZ Debezium's connector 3.1.
"""

from __future__ import annotations

KIND = (
    "CASE WHEN tabtype = 'T' AND tabid <= 99 THEN 'SYSTEM TABLE' WHEN tabtype = 'T' AND tabid > 99 THEN"
    " 'TABLE' WHEN tabtype = 'V' THEN 'VIEW' WHEN tabtype = 'S' OR tabtype = 'P' THEN 'SYNONYM' WHEN"
    " tabtype = 'L' THEN 'LOG' WHEN tabtype = 'E' THEN 'TABLE' ELSE 'UNKNOWN' END"
)
GET_TABLES = (  # J, for DBZ
    f"select tabname, {KIND} TABLE_TYPE , owner from stores:informix.systables where {KIND}"
    " in ('TABLE','VIEW') and tabname like '%' and owner like 'informix' order by 2, 3, 1 "
)
_PARTS = ",".join(f"ABS(si.part{n})" for n in range(1, 17))
_ANY_PART = " or ".join(f"sc.colno = ABS(si.part{n})" for n in range(1, 17))
GET_PRIMARY_KEYS = (  # J, for DBZ
    f" select sc.colname, so.constrname, st.tabname, st.owner, sc.colno, {_PARTS} from"
    " stores:informix.systables st,stores:informix.sysconstraints so,stores:informix.sysindexes si,"
    "stores:informix.syscolumns sc where ( st.tabname like 'customer' or st.tabname like 'customer' )"
    " and st.tabid = so.tabid and so.constrtype = 'P' and so.idxname = si.idxname and"
    f" sc.tabid = st.tabid and st.owner like 'informix' and ({_ANY_PART} ) order by 1"
)


def _half(first: str, second: str, joined: str) -> str:
    """Return one SELECT of the driver's getColumns: of tables, or of synonyms."""
    return (
        f"SELECT trim({first}.owner), {first}.tabname, c.colname,"
        "informix.get_data_type(c.coltype, c.extended_id, 0),"
        " trim(informix.schema_coltypename(c.coltype,c.extended_id)),"
        "informix.schema_precision(c.coltype, c.extended_id, c.collength), 0,"
        "informix.schema_numscale(c.coltype, c.collength), informix.schema_numprecradix(c.coltype),"
        "informix.schema_isnullable(c.coltype), NULL::VARCHAR(1),CASE d.type WHEN 'L' THEN"
        " informix.get_default_value(c.coltype, c.extended_id, c.collength, d.default)"
        " WHEN 'C' THEN 'current' WHEN 'S' THEN 'dbservername' WHEN 'U' THEN 'user'"
        " WHEN 'T' THEN 'today' ELSE NULL::VARCHAR(1) END,c.coltype,"
        " informix.schema_datetype(c.coltype, c.collength),"
        " informix.schema_charlen(c.coltype, c.extended_id, c.collength),c.colno,"
        " informix.schema_nullable(c.coltype)::VARCHAR(3), NULL::VARCHAR(1), NULL::VARCHAR(1),"
        " NULL::VARCHAR(1), NULL::smallint, informix.schema_isautoincr(c.coltype)::VARCHAR(3),"
        f"c.extended_id FROM {second} OUTER stores:informix.sysdefaults d,"
        f" stores:informix.syscolumns c WHERE {joined} and d.tabid = t.tabid AND c.colno = d.colno"
        f" AND (d.class in ('T')) AND {first}.tabname like 'cust%' AND {first}.owner like 'informix'"
        " and c.colname like '%'"
    )


GET_COLUMNS = (  # J, for DBZ
    _half("t", "stores:informix.systables t,", "t.tabid = c.tabid AND (t.tabtype not in ('P', 'S'))")
    + " union "
    + _half(
        "st",
        "stores:informix.systables st, stores:informix.syssyntable s, stores:informix.systables t,",
        "st.tabid = s.tabid AND s.btabid = t.tabid AND t.tabid = c.tabid",
    )
    + " order by 1,2,16 "
)
