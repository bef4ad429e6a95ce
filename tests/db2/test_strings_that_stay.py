"""Strings outside of their row that a change left as they are: the log has no data of them."""

from __future__ import annotations

from db2.log_writer import UPDATE, LogWriter
from db2.test_log_records import IDS, STRINGS, decoder, lobs, row_with_strings, rows_of

ROW = row_with_strings("<", 1, 8)


def strings_of(data: bytes) -> list[tuple[str, str | None, str, list[str]]]:
    rows = rows_of(decoder(STRINGS, ids=IDS), data)
    return [
        (row["_change_type"], row["B"], row["C"], [status for _, _, status, _ in lobs(row)])
        for row in rows
    ]


def test_strings_that_an_update_left_alone_are_null_and_told_as_unchanged() -> None:
    log = LogWriter(fixed=12)
    data = log.out_of_row() + log.lob_header_only(67) + log.update(ROW, ROW) + log.commit()
    assert strings_of(data) == [
        ("update_preimage", None, "ccc", ["unchanged"]),
        ("update_postimage", None, "ccc", ["unchanged"]),
    ]


def test_old_strings_of_which_the_log_has_no_data_are_null_and_told() -> None:
    log = LogWriter(fixed=12)
    new = log.lob(64, 65535, log.strings([b"", b"new text", b""], "<"), UPDATE)
    updated = log.out_of_row() + log.lob_header_only(66) + new + log.update(ROW, ROW)
    deleted = log.row(161, ROW) + log.lob_header_only(66)
    assert strings_of(updated + deleted + log.commit()) == [
        ("update_preimage", None, "ccc", ["old", "complete"]),
        ("update_postimage", "new text", "ccc", ["old", "complete"]),
        ("delete", None, "ccc", ["old"]),
    ]


def test_a_new_string_is_not_taken_for_one_that_the_log_has_no_record_of() -> None:
    log = LogWriter(fixed=12)
    data = log.out_of_row() + log.row(162, ROW) + log.commit()
    (row,) = rows_of(decoder(STRINGS, ids=IDS, bad="row"), data)
    assert row["_error"] == "column B: it is stored outside of the row, and the log has no record of it"
