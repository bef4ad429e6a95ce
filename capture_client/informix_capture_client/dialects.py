"""What differs between Informix and its fork GBase 8s, in one table.

Rule: everything that is the same is written once, in Informix's words; a fact that differs is a field
here, with its source. What no source says of GBase 8s is not a field but a row of docs/assumptions.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ROUTINE_PREFIX = re.compile(r"\bsyscdcv1:informix\.(?=cdc_)")
_OWNER = re.compile(r"\binformix\.")


@dataclass(frozen=True, slots=True)
class Dialect:
    """One of the two products.

    Attributes:
        product: its name in messages.
        owner: who owns the system tables, and as whom its guide lets capture.
        routine_prefix: the prefix of `cdc_` functions: their database and owner.
        capture_database: where a capture connects; empty: to the captured database itself.
        home: the environment variable that names an installation, of a server or of a client kit.
        libraries: file names of its ODBC driver below `lib/cli` or `lib`, the thread-safe one; patterns
            of names that have a version in them come last.
        descriptor_bytes: of a TEXT or BYTE, as its value is asked for over the wire.
    """

    name: str
    product: str
    owner: str
    routine_prefix: str
    capture_database: str
    home: str
    libraries: tuple[str, ...]
    descriptor_bytes: int

    def statement(self, text: str) -> str:
        """Return one of `statements` as this product wants it.

        >>> GBASE_8S.statement("EXECUTE FUNCTION syscdcv1:informix.cdc_errortext(?, ?)")
        'EXECUTE FUNCTION cdc_errortext(?, ?)'
        >>> GBASE_8S.statement("SELECT majvers FROM syscdcv1:informix.syscdcvers")
        'SELECT majvers FROM syscdcv1:gbasedbt.syscdcvers'
        """
        if self is INFORMIX:
            return text
        return _OWNER.sub(f"{self.owner}.", _ROUTINE_PREFIX.sub(self.routine_prefix, text))

    def worded(self, text: str, **facts: str) -> str:
        """Return a message whose `{product}`, `{owner}` and `{home}` are filled in, and more facts."""
        return text.format(product=self.product, owner=self.owner, home=self.home, **facts)


INFORMIX = Dialect(
    name="informix",
    product="Informix",
    owner="informix",  # CDC guide, chapter 1
    # over a connection to the captured database, as two open clients do on Informix 15 (decision 0024)
    routine_prefix="syscdcv1:informix.",
    capture_database="",
    home="INFORMIXDIR",
    # the same driver under two names, and that of HCL's client 15 on NuGet, lib/libthcli15a.so
    libraries=("libthcli.so", "iclit09b.so", "libthcli*.so"),
    descriptor_bytes=56,  # as IBM's JDBC driver 4.50.11 sends it
)
GBASE_8S = Dialect(
    name="gbase8s",
    product="GBase 8s",
    # its CDC guide, 1.10 and 1.11; docs.gbasedbt.com/gbase8s/sqs/ids_sqs_1703.html for the tables
    owner="gbasedbt",
    # its Java sample (dbboys.com, 2024) calls them without an owner, connected to syscdcv1 as gbasedbt
    routine_prefix="",
    capture_database="syscdcv1",
    home="GBASEDBTDIR",  # docs.gbasedbt.com; the guide prints it as GBASEBTDIR
    # every published odbc.ini names this one (dbboys.com; django_gbasedbtdb); libthcli.so was not found
    libraries=("iclit09b.so",),
    descriptor_bytes=64,  # as gbase8sdb 1.1.1 sends it, with zeros behind those of a row
)
DIALECTS = {dialect.name: dialect for dialect in (INFORMIX, GBASE_8S)}
