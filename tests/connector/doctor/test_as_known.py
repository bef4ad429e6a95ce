"""Each check is run as soon as what it asks for is known, in the order of the list, and once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from connector.doctor.set_ups import SOUND
from informix_cdc.doctor import Look, examine, examine_as_known
from informix_cdc.doctor.checks import CHECKS


def test_findings_are_those_of_a_look_at_everything_and_come_before_the_rest_is_asked() -> None:
    asked: list[str] = []

    def looks() -> Iterator[Look]:
        asked.append("server")
        yield Look(replace(SOUND, tables=(), cdc=SOUND.cdc), ("tables", "cdc"))
        asked.append("cdc")
        yield Look(SOUND, ("tables",))
        asked.append("tables")
        yield Look(SOUND)

    told = [(finding, len(asked)) for found in examine_as_known(looks()) for finding in found]
    assert [finding for finding, _ in told] == examine(SOUND)
    of_stage = {stage: [finding.check for finding, at in told if at == stage] for stage in (1, 2, 3)}
    assert of_stage[1] == ["driver", "encryption", "password", "connection", "syscdcv1"]
    assert of_stage[2] == ["api version"]
    assert len(list(examine_as_known([Look(SOUND)]))) == len(CHECKS)
