"""The demo on a machine that is too busy for the time that Spark gives a Python worker."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException

from informix_cdc.demo.spark import again_if_late

LATE = "Python worker failed to connect back."


@pytest.mark.parametrize(
    ("failures", "calls", "ends_well"),
    [([], 1, True), ([LATE] * 2, 3, True), ([LATE] * 3, 3, False), (["no such table"], 1, False)],
    ids=["in time", "late twice", "late for ever", "another failure"],
)
def test_a_query_whose_worker_comes_late_is_started_again(
    failures: list[str], calls: int, ends_well: bool
) -> None:
    made: list[Any] = []

    def start() -> Any:
        made.append(object())
        if len(made) <= len(failures):
            raise PySparkException(failures[len(made) - 1])
        return made[-1]

    if ends_well:
        assert again_if_late(start) is made[-1]
    else:
        with pytest.raises(PySparkException, match=failures[-1]):
            again_if_late(start)
    assert len(made) == calls
