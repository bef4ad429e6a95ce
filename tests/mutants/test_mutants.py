"""The table of mutants moves with the code: every entry can be applied, and names tests that exist."""

from __future__ import annotations

import pytest

from harness.runs.tiers import ONLY_IN_ALL
from mutants import ROOT, SOURCE_ROOTS, Mutant, known_mutants

MUTANTS = known_mutants()
WHOLE_PACKAGES = [ROOT / "capture_client" / name for name in ("informix_db2", "informix_emulator")]
ROOMS = WHOLE_PACKAGES + [
    init.parent
    for root in SOURCE_ROOTS
    for init in (ROOT / root).glob("informix_*/*/__init__.py")
    if init.parents[1] not in WHOLE_PACKAGES
]
each_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])


@each_mutant
def test_a_mutant_replaces_a_text_that_stands_once_in_its_file_and_compiles(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.text) == 1
    mutated = mutant.applied_to(source)
    assert mutated != source
    compile(mutated, mutant.file, "exec")


@each_mutant
def test_a_mutant_names_tests_that_exist_and_what_goes_wrong_in_one_sentence(mutant: Mutant) -> None:
    assert mutant.killers
    for killer in mutant.killers:
        file, *names = killer.split("::")
        source = (ROOT / file).read_text(encoding="utf-8")
        assert all(f"def {name}(" in source or f"class {name}" in source for name in names)
    assert mutant.harm.endswith(".")
    assert ". " not in mutant.harm


@each_mutant
def test_a_mutant_is_noticed_by_make_test(mutant: Mutant) -> None:
    assert not all(killer.startswith(ONLY_IN_ALL) for killer in mutant.killers)


def test_mutants_have_names_of_their_own() -> None:
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)


def test_there_are_enough_mutants_and_some_are_defects_of_the_past() -> None:
    assert len(MUTANTS) >= 40
    assert len([each for each in MUTANTS if each.past]) >= 10


def test_every_room_has_a_mutant() -> None:
    files = [ROOT / each.file for each in MUTANTS]
    assert [room for room in ROOMS if not any(room in file.parents for file in files)] == []
