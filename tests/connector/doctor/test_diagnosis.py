"""Each check is run as soon as what it asks for is known, in the order of the list, and once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from connector.doctor.set_ups import SOUND, examine
from informix_cdc.doctor.checks import CHECKS
from informix_cdc.doctor.diagnosis import KnownSoFar, check_as_known


def test_findings_are_those_of_a_look_at_everything_and_come_before_the_rest_is_asked() -> None:
    asked: list[str] = []

    def looks() -> Iterator[KnownSoFar]:
        asked.append("server")
        yield KnownSoFar(replace(SOUND, tables=(), cdc=SOUND.cdc), ("tables", "cdc"))
        asked.append("cdc")
        yield KnownSoFar(SOUND, ("tables",))
        asked.append("tables")
        yield KnownSoFar(SOUND)

    told = [(finding, len(asked)) for found in check_as_known(looks()) for finding in found]
    assert [finding for finding, _ in told] == examine(SOUND)
    of_stage = {stage: [finding.check for finding, at in told if at == stage] for stage in (1, 2, 3)}
    assert of_stage[1] == ["driver", "encryption", "password", "connection", "syscdcv1"]
    assert of_stage[2] == ["api version"]
    assert len(list(check_as_known([KnownSoFar(SOUND)]))) == len(CHECKS)
