"""Run the checks one by one, each as soon as what it asks for is known.

Rule: no list says which check needs which fact. A check that asks for a fact that is not there yet is
begun again when there is more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from informix_capture_client.findings import Finding
from informix_cdc.doctor.checks import CHECKS, SetUp


class _NotYetKnown(Exception):
    """A check asked for a fact that nobody has looked at so far."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is known so far; `unknown` names the fields of the set-up that nobody has asked for yet."""

    set_up: SetUp
    unknown: Collection[str] = ()


class _SoFar:
    """A set-up that refuses to tell what is not known."""

    def __init__(self, look: Look) -> None:
        self._look = look

    def __getattr__(self, name: str) -> object:
        if name in self._look.unknown:
            raise _NotYetKnown(name)
        return getattr(self._look.set_up, name)


def examine_as_known(looks: Iterable[Look]) -> Iterator[list[Finding]]:
    """Yield what each check found, in the order of `CHECKS`; the last look must know everything."""
    waiting = list(CHECKS)
    for look in looks:
        so_far = cast("SetUp", _SoFar(look))
        while waiting:
            try:
                findings = list(waiting[0](so_far))
            except _NotYetKnown:
                break
            del waiting[0]
            yield findings
