"""What decides whether the rows of a kept spool are still those that would be captured now."""

from __future__ import annotations

import pytest

from informix_capture_client.choices import DecodeRules, RowForm
from informix_cdc.server.source_tables import SourceTables

# Of kept spools: they change only with _STORED_FORM.
DIGESTS = [
    ("defaults", DecodeRules(), RowForm(server="ol_stores"), "80a877ba49e27d5a"),
    (
        "everything chosen otherwise",
        DecodeRules(
            codec="cp1252",
            keep_blanks=True,
            bad_characters="replace",
            floating_decimal=4,
            intervals="string",
        ),
        RowForm(shape="envelope", truncate="emit", before_image=False, server="s"),
        "aa45dc0a41ecae6f",
    ),
]


@pytest.mark.parametrize(("rules", "row_form", "digest"), [case[1:] for case in DIGESTS])
def test_a_kept_spool_is_still_read(rules: DecodeRules, row_form: RowForm, digest: str) -> None:
    assert SourceTables((), "en_US.utf8", rules, row_form, "x").row_digest == digest


def test_rows_with_other_metadata_columns_are_not_those_of_a_kept_spool() -> None:
    forms = [RowForm(), RowForm(metadata="minimal")]
    assert len({SourceTables((), "x", DecodeRules(), form, "x").row_digest for form in forms}) == 2
