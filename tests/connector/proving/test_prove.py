"""`informix-cdc prove` as a whole: what the emulator can show holds, and what is reported."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from connector.proving.running import DATABASE, PASSWORD, left_on, quick, served
from informix_cdc.commands import prove
from informix_cdc.commands.cli import main
from informix_cdc.options import PASSWORD_VARIABLE, SourceOptions
from informix_cdc.proving import PROOFS, Outcome, ProofResult, report, run_proofs, standing_of
from informix_cdc.proving.all_proofs import UNTRIED
from informix_cdc.version import __version__
from informix_emulator import EmulatedServer
from lab.live.assumptions_page import assumptions

Place = tuple[EmulatedServer, SourceOptions]
OF_ODBC, OF_GBASE = {1, 2, 11, 14, 113, 114}, {31, 37}
CONSTANTS = {"größer", "for ever", "kept", "in the buffer", "123456789", "2024-"}


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    quick(monkeypatch)
    with served() as found:
        yield found


def run(options: SourceOptions, *arguments: str) -> Result:
    words = [
        "--host",
        options.connection.host,
        "--port",
        str(options.connection.port),
        "--server",
        options.connection.server,
    ]
    words += ["--transport", "sqli", "--database", options.connection.database, *arguments]
    environment = {PASSWORD_VARIABLE: PASSWORD, "COLUMNS": "200"}
    return CliRunner().invoke(main, ["prove", *words], env=environment)


def only(monkeypatch: pytest.MonkeyPatch, *names: str, hook: Any = lambda: None) -> None:
    """Let the command run some proofs only, and call a hook after the first outcome."""
    chosen = [each for each in PROOFS if each.name in names]

    def chosen_proofs(prover: Any) -> Iterator[Any]:
        for number, outcome in enumerate(run_proofs(prover, chosen)):
            yield outcome
            if number == 0:
                hook()

    monkeypatch.setattr(prove, "run_proofs", chosen_proofs)


def numbers(content: dict[str, Any]) -> Sequence[set[int]]:
    found = content["assumptions"]
    return {*found["held"]}, {*found["deviated"]}, {*map(int, found["not_tried"])}


@pytest.mark.slow
def test_the_emulator_holds_whatever_it_can_try(place: Place, tmp_path: Path) -> None:
    server, options = place
    file = tmp_path / "report.json"
    result = run(options, "--report", str(file))
    content = json.loads(file.read_text())
    deviations = [each for each in content["proofs"] if each["result"] == "deviated"]
    assert deviations == []
    assert result.exit_code == 0, result.output
    held, deviated, not_tried = numbers(content)
    assert deviated == set()
    assert not_tried == {*UNTRIED} | OF_ODBC | OF_GBASE
    assert held == {row.number for row in assumptions()} - not_tried
    assert f"{len(held)} assumptions held, 0 did not, {len(not_tried)} not tried." in result.stdout
    assert "Nothing is left behind on the server." in result.stdout
    assert left_on(server) == []
    require_no_names(file.read_text() + result.output, options)


def require_no_names(text: str, options: SourceOptions) -> None:
    """Neither report nor output has a name, a secret, or a text that was written into a row."""
    secrets = {
        PASSWORD,
        DATABASE,
        options.connection.host,
        str(options.connection.port),
        options.connection.server,
        "ifxcdc_proof",
    }
    assert {word for word in secrets | CONSTANTS if word in text} == set()
    assert not re.search(r"\buser\b.*informix", text)


def test_every_assumption_is_in_a_proof_or_has_a_reason() -> None:
    tried = {number for each in PROOFS for number in each.assumptions}
    assert tried | {*UNTRIED} == {row.number for row in assumptions()}
    assert tried & {*UNTRIED} == set()


def test_proofs_have_names_of_their_own_and_say_what_they_do() -> None:
    assert len({each.name for each in PROOFS}) == len(PROOFS)
    assert all(each.does and not each.does.endswith(".") for each in PROOFS)


def test_one_contradiction_outweighs_proofs_that_held() -> None:
    proof = replace(PROOFS[0], assumptions=(3, 7))
    held = Outcome(proof, ProofResult.HELD)
    deviated = Outcome(proof, ProofResult.DEVIATED, contradicted=(7,))
    standing = standing_of([held, deviated, held])
    assert (standing.held, standing.deviated) == ((3,), (7,))
    assert not {3, 7} & {*standing.not_tried}


@pytest.mark.slow
def test_a_deviation_is_printed_and_reported_with_exit_code_1(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, options = place
    server.table_age_seconds = 1000.0
    only(monkeypatch, "when a partition was created", "error texts")
    file = tmp_path / "report.json"
    result = run(options, "--report", str(file))
    assert result.exit_code == 1
    assert "expected: the time of CREATE TABLE" in result.stdout
    assert "1 assumption held, 1 did not," in result.stdout
    content = json.loads(file.read_text())
    assert numbers(content)[:2] == ({42}, {54})
    (deviation,) = [each for each in content["proofs"] if each["result"] == "deviated"]
    assert re.fullmatch(r"1\d\d\d s before", deviation["found"])
    assert left_on(server) == []


@pytest.mark.slow
def test_a_report_says_what_was_tried_and_where(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, options = place
    only(monkeypatch, "the next position")
    monkeypatch.chdir(tmp_path)
    result = run(options)
    (file,) = tmp_path.glob("informix-cdc-proof-*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    content = json.loads(file.read_text())
    assert content["informix_cdc"] == __version__
    assert content["server"] == {
        "product": "informix", "version": server.version, "code_set": "utf-8",
    }  # fmt: skip
    assert content["client"]["transport"] == "sqli"
    assert content["proofs"][0]["observed"] == ["syslogs.used is the current page"]
    assert (content["interrupted"], content["left_behind"]) == (False, 0)
    require_no_names(file.read_text() + result.output, options)


@pytest.mark.slow
def test_ctrl_c_reports_what_is_known_and_leaves_nothing(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, options = place
    names = ("error texts", "an error of sql")
    only(monkeypatch, *names, hook=lambda: os.kill(os.getpid(), signal.SIGTERM))
    file = tmp_path / "report.json"
    result = run(options, "--report", str(file))
    assert result.exit_code == 130, result.output
    content = json.loads(file.read_text())
    assert content["interrupted"] is True
    assert numbers(content)[0] == {42}
    assert content["assumptions"]["not_tried"]["109"] == "the run was interrupted"
    assert left_on(server) == []


def test_a_report_that_exists_is_not_overwritten_and_nothing_is_run(
    place: Place, tmp_path: Path
) -> None:
    server, options = place
    file = tmp_path / "report.json"
    file.write_text("mine")
    result = run(options, "--report", str(file))
    assert result.exit_code == 2
    assert "already exists" in result.stderr
    assert file.read_text() == "mine"
    assert left_on(server) == []


def test_a_folder_that_cannot_be_written_is_refused_before_the_run(
    place: Place, tmp_path: Path
) -> None:
    server, options = place
    result = run(options, "--report", str(tmp_path / "missing" / "report.json"))
    assert result.exit_code == 2
    assert "missing is not a folder that can be written" in result.stderr
    assert left_on(server) == []


def test_reports_go_to_the_tracker_of_the_package_or_to_the_project(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Metadata:
        def get_all(self, _: str) -> list[str]:
            return ["Homepage, https://example.org", "Issues, https://example.org/issues"]

    monkeypatch.setattr(report.metadata, "metadata", lambda _: Metadata())
    assert report.place_to_send() == "https://example.org/issues"
    monkeypatch.setattr(Metadata, "get_all", lambda *_: None)
    assert report.place_to_send() == "an issue of the project"
