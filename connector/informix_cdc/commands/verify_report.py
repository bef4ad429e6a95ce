"""The result of a verification as a page of HTML, for people who keep it.

Rule: one file without scripts and without anything from elsewhere. Text of others is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any

from informix_capture_client.positions import show
from informix_capture_client.printable import printable
from informix_cdc.lake import Verification
from informix_cdc.terminal import counted
from informix_cdc.version import __version__

_MOST_DIFFERENCES = 1000  # that are listed; all of them are counted
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; max-width: 60em; margin: 2em auto }
table { border-collapse: collapse; width: 100% }
th, td { padding: .3em .6em; border-bottom: 1px solid #d5dbe1; text-align: left }
td.n { text-align: right; font-variant-numeric: tabular-nums }
.equal { color: #1a7f37 } .differs { color: #b42318 } .about { color: #52606d }
"""


def report_page(found: Verification, about: Mapping[str, str], at: datetime) -> str:
    """Return the page of a verification.

    Args:
        found: its result.
        about: what was compared, by its name: server, database, place of the tables.
        at: the time of the report.
    """
    rows = sum(each.rows for each in found.tables)
    differences = sum(each.differences for each in found.tables)
    tables = counted(len(found.tables), "table")
    if found.is_equal:
        verdict = f"{tables} equal Informix: {counted(rows, 'row')} compared, no difference."
    else:
        verdict = f"{counted(differences, 'difference')} in {tables}, {counted(rows, 'row')} compared."
    if found.unverified:
        verdict += f" Not verified: {counted(len(found.unverified), 'table')}."
    shown = found.differences.slice(0, _MOST_DIFFERENCES).to_pylist()
    facts = {
        **about,
        "Report": f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, informix-cdc {__version__}",
    }
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Verification</title>',
        f"<style>{_STYLE}</style></head><body><h1>Verification of a mirror</h1>",
        f'<p class="{"equal" if found.is_equal else "differs"}"><strong>{_text(verdict)}</strong></p>',
        _table((), ((name, value) for name, value in facts.items())),
        "<h2>Tables</h2>",
        "<p class=about>Both sides of a table are compared as of one commit of Informix.</p>",
        _table(
            ("table", "rows", "missing", "extra", "different", "commit"),
            (
                (each.table, each.rows, each.missing, each.extra, each.different, show(each.commit))
                for each in found.tables
            ),
        ),
    ]
    if found.unverified:
        parts += ["<h2>Not verified</h2>", _table(("table", "reason"), found.unverified.items())]
    if shown:
        more = f", the first {len(shown):,}" if found.differences.num_rows > len(shown) else ""
        parts += [
            f"<h2>Differences{more}</h2>",
            _table(
                ("table", "key", "what", "columns", "commit", "repaired"),
                (_difference(row) for row in shown),
            ),
        ]
    return "\n".join([*parts, "</body></html>", ""])


def _difference(row: Mapping[str, Any]) -> tuple[object, ...]:
    columns = ", ".join(row["columns"] or ())
    repaired = "yes" if row["repaired"] else "no"
    return row["table"], row["key"], row["what"], columns, show(row["commit"]), repaired


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    names = "".join(f"<th>{_text(name)}</th>" for name in head)
    lines = [f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows]
    return "\n".join(["<table>", *([f"<tr>{names}</tr>"] if names else []), *lines, "</table>"])


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f'<td class="n">{value:,}</td>'
    return f"<td>{_text(str(value))}</td>"


def _text(text: str) -> str:
    return escape(printable(text))
