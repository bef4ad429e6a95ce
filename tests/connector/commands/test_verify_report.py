"""The report of a verification: what it says, and that it is safe to open."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser

import pyarrow as pa

from informix_cdc.commands.verify_report import report_page
from informix_cdc.lake import Verification, VerifiedTable

AT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
COLUMNS = ("table", "key", "what", "columns", "commit", "repaired")


class Page(HTMLParser):
    """Reads tags and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.text, self._open = set[str](), "", list[str]()
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + " "


def report(*rows: tuple[object, ...], unverified: dict[str, str] | None = None) -> Page:
    table = VerifiedTable("informix.orders", 1 << 33, 1200, 0, 0, len(rows))
    found = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    differences = pa.Table.from_pylist(
        found,
        pa.schema(
            [
                *((name, pa.string()) for name in COLUMNS[:3]),
                ("columns", pa.list_(pa.string())),
                ("commit", pa.int64()),
                ("repaired", pa.bool_()),
            ]
        ),
    )
    made = Verification((table,), differences, unverified or {})
    return Page(report_page(made, {"Informix": "stores on ids1"}, AT))


def test_equal_tables_are_stated_with_rows_commit_and_time() -> None:
    page = report()
    for word in ("1 table equal", "1,200 rows", "2:0x0", "stores on ids1", "2026-11-29 12:00:00 UTC"):
        assert word in page.text, word
    assert "Differences" not in page.text


def test_differences_and_tables_that_were_not_verified_are_listed() -> None:
    row = ("informix.orders", '{"order_num": 7}', "different", ["city"], 1 << 33, True)
    page = report(row, unverified={"informix.items": "it is stopped"})
    assert "1 difference in 1 table" in page.text
    assert "Not verified: 1 table" in page.text
    for word in ('{"order_num": 7}', "different", "city", "yes", "it is stopped"):
        assert word in page.text, word


def test_text_of_others_is_no_markup_and_many_differences_are_cut() -> None:
    row = ("informix.orders", "<script>alert(1)</script>\x1b[2J", "extra", [], 1 << 33, False)
    page = report(*[row] * 1001)
    assert "script" not in page.tags
    assert "\x1b" not in page.text
    assert "the first 1,000" in page.text
