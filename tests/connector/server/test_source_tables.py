"""What decides whether the changes of a kept spool are still those that would be stored now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from informix_capture_client.choices import DecodeRules, RowForm
from informix_cdc.server.source_tables import SourceTables
from informix_cdc.server.table_definitions import TableDefinition

# Of kept spools: they change only with _STORED_FORM.
DIGESTS = [
    ("defaults", DecodeRules(), "c2e6c7f607dbf776"),
    (
        "everything chosen otherwise",
        DecodeRules(
            codec="cp1252",
            keep_blanks=True,
            bad_characters="replace",
            floating_decimal=4,
            intervals="string",
        ),
        "7881c901797fc7be",
    ),
]


@pytest.mark.parametrize(("rules", "digest"), [case[1:] for case in DIGESTS])
def test_a_kept_spool_is_still_read(rules: DecodeRules, digest: str) -> None:
    assert SourceTables((), "en_US.utf8", rules, RowForm(), "x").row_digest == digest


def test_what_a_reader_makes_of_changes_is_no_part_of_the_digest() -> None:
    forms = [
        RowForm(),
        RowForm(server="ol_stores"),
        RowForm(shape="json", truncate="ignore"),
        RowForm(shape="envelope", truncate="emit", before_image=False),
        RowForm(metadata="minimal", table_events=True),
    ]
    assert len({SourceTables((), "x", DecodeRules(), form, "x").row_digest for form in forms}) == 1


def test_changes_without_definitions_are_not_those_that_shape_arrow_needs() -> None:
    one = SourceTables((), "x", DecodeRules(), RowForm(), "x")
    described = replace(one, definitions=(TableDefinition("informix.t", (), (), ""),))
    assert one.row_digest != described.row_digest
