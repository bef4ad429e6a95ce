"""A thousand objects of a mebibyte in one transaction stay within the memory of a few of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.benchmarks.test_large_objects import MEBIBYTE, told_of

pytestmark = pytest.mark.slow
MOST_MEBIBYTES = 512


def test_a_gibibyte_of_contents_in_one_transaction_stays_below_512_mib(tmp_path: Path) -> None:
    told = told_of(tmp_path, 1000, MEBIBYTE, "sqli")
    assert (told["read"], told["read_bytes"]) == (1000, 1000 * MEBIBYTE)
    assert told["peak"] < MOST_MEBIBYTES
