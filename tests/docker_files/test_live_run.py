"""A first live run by anybody: the workflow, and its script with stand-ins for Docker and dotnet."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from connector.proving.running import PASSWORD, quick, served
from connector.proving.test_prove import only
from docker_files.docker_folder import DOCKER, ROOT, SERVICES, run
from informix_cdc.commands.cli import main
from informix_cdc.options import PASSWORD_VARIABLE
from odbc_driver.build import build_drivers

SCRIPT = DOCKER / "live.sh"
WORKFLOW: dict[str, Any] = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "live.yml")
(JOB,) = WORKFLOW["jobs"].values()
# the server answers from its third question on; the kit is a folder of the test
STAND_INS = {
    "docker": """#!/usr/bin/env bash
echo "docker $*" >>"$STATE/done"
count() { local n=$(($(cat "$STATE/$1" 2>/dev/null || echo 0) + 1)); echo $n >"$STATE/$1"; echo $n; }
case "$1" in
    pull) [ "$(count pulls)" -gt "${FAILED_PULLS:-0}" ] ;;
    exec) [ "$(count asked)" -gt "${UNANSWERED:-2}" ] ;;
    create) echo made ;;
    cp) cp -r "$KIT" "$3" ;;
esac
""",
    "dotnet": """#!/usr/bin/env bash
echo "dotnet $*" >>"$STATE/done"
[ "$1" != add ] || { mkdir -p "${@: -1}/p/lib" && cp "$KIT"/lib/*.so "${@: -1}/p/lib/"; }
""",
    "sleep": "#!/usr/bin/env bash\n",
    "informix-cdc": """#!/usr/bin/env bash
echo "$@" >>"$STATE/done"
""",
}

Live = Callable[..., CompletedProcess[str]]


@pytest.fixture
def live(tmp_path: Path) -> Live:
    """Return a function that runs a step of the script; what it calls is in the file `done`."""
    kit, commands = tmp_path / "kit", tmp_path / "bin"
    (kit / "lib" / "cli").mkdir(parents=True)
    shutil.copy(build_drivers().wide, kit / "lib" / "cli" / "libthcli.so")
    shutil.copy(build_drivers().wide, kit / "lib" / "libthcli15a.so")
    commands.mkdir()
    for name, text in STAND_INS.items():
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    own = {"STATE": str(tmp_path), "KIT": str(kit), "LIVE_FOLDER": str(tmp_path / "live")}
    own["PATH"] = f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}"

    def step(*words: str, **environment: str) -> CompletedProcess[str]:
        return run("bash", SCRIPT, *words, **{"LICENSE": "accept", **own, **environment})

    return step


def done(folder: Path) -> list[str]:
    return (folder / "done").read_text().splitlines()


@pytest.mark.parametrize("words", [("start", "15"), ("kit", "image"), ("kit", "nuget")])
@pytest.mark.parametrize("typed", ["", "yes", "Accept"])
def test_nothing_is_pulled_before_the_licence_is_accepted(
    live: Live, tmp_path: Path, words: tuple[str, str], typed: str
) -> None:
    refused = live(*words, LICENSE=typed)
    assert refused.returncode == 1
    assert "set LICENSE=accept" in refused.stderr
    assert not (tmp_path / "done").exists()


def test_a_server_is_started_with_the_licence_of_the_environment_and_awaited(
    live: Live, tmp_path: Path
) -> None:
    started = live("start", "15.0.1.0.3", FAILED_PULLS="2")
    assert started.returncode == 0, started.stderr
    image = SERVICES["informix"]["image"]
    *pulls, ran, first, second, third, set_up = done(tmp_path)
    assert pulls == [f"docker pull {image}"] * 3
    assert ran.endswith(f" {image}")
    assert " --env LICENSE --env " in ran  # its value is not in the command line
    assert first == second == third
    assert "onstat - | grep -q On-Line" in third
    assert "dbaccess - syscdcv1.sql" in set_up


@pytest.mark.parametrize(
    ("environment", "why"),
    [({"FAILED_PULLS": "3"}, "cannot be pulled"), ({"UNANSWERED": "60"}, "not On-Line")],
)
def test_a_server_that_does_not_come_up_ends_the_run(
    live: Live, environment: dict[str, str], why: str
) -> None:
    failed = live("start", "15.0.1.0.3", **environment)
    assert failed.returncode == 1
    assert why in failed.stderr


@pytest.mark.parametrize("source", ["image", "nuget"])
def test_a_kit_has_a_driver_that_is_found_and_loads(live: Live, tmp_path: Path, source: str) -> None:
    taken = live("kit", source)
    assert taken.returncode == 0, taken.stderr
    found = run("bash", "-c", f"{sys.executable} docker/client/check_driver.py",
                INFORMIXDIR=str(tmp_path / "live" / "kit"))  # fmt: skip
    assert re.search(r"libthcli\w*\.so loads", found.stdout), found.stderr


@pytest.mark.slow
def test_the_step_that_proves_writes_a_report(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it runs is run here, with one proof, on the emulator."""
    quick(monkeypatch)
    only(monkeypatch, "the next position")
    report = tmp_path / "sqli.json"
    with served() as (server, options):
        server.name = "informix"
        assert "run the step kit first" in live("prove", "odbc", "odbc.json").stderr
        assert (
            live("prove", "sqli", str(report), INFORMIX_PORT=str(options.connection.port)).returncode
            == 0
        )
        (command,) = done(tmp_path)
        environment = {PASSWORD_VARIABLE: PASSWORD}
        result = CliRunner().invoke(main, command.split(), env=environment)
    assert result.exit_code == 0, result.output
    assert json.loads(report.read_text())["assumptions"]["held"]


def test_the_workflow_runs_steps_of_the_script_for_the_images_of_compose() -> None:
    typed = WORKFLOW["on" if "on" in WORKFLOW else True]["workflow_dispatch"]["inputs"]["licence"]
    assert typed["required"]
    assert "default" not in typed
    assert JOB["env"]["LICENSE"] == "${{ inputs.licence }}"
    ran = [step["run"] for step in JOB["steps"] if "live.sh" in step.get("run", "")]
    steps = [line.split()[1] for line in ran]
    assert steps == ["start", "prove", "tests", "kit", "prove", "tests", "logs"]
    of_compose = {each["image"].partition(":")[2].partition("@")[0] for name, each in SERVICES.items()
                  if name.startswith("informix")}  # fmt: skip
    assert set(JOB["strategy"]["matrix"]["tag"]) == of_compose
