"""The server's set-up, run with a stand-in for dbaccess that remembers what was done."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from docker_files.compose_file import DOCKER, SCRIPTS, lint

INFORMIX = DOCKER / "informix"
SOURCED = {"post_init.sh", "server.sh"}
# What each script file leaves behind on a server, as a query finds it.
LEAVES = {
    "sbspace.sql": "sbspace",
    "syscdcv1.sql": "syscdcv1",
    "database.sql": "stores",
    "demo_data.sql": "101",
    "workload.sql": "shop_order",
}
DBACCESS = """#!/usr/bin/env bash
case "$1 ${DB_LOCALE:-none}" in
    "sysmaster none" | "sysadmin none" | "stores en_US.utf8" | "- "*) ;;
    *) echo "23197: Database locale information mismatch." >&2; exit 1 ;;
esac
if [ "$2" = - ]; then
    query=$(cat)
    for word in $(ls "$STATE/made"); do
        case "$query" in *"= '$word'"* | *"= $word"*) echo "name  $word" ;; esac
    done
    exit 0
fi
echo "$1 $(basename "$2") ${DB_LOCALE:-none}" >>"$STATE/done"
[ "$(basename "$2")" != "${BROKEN:-}" ] && [ -e "$2" ] || exit 1
case "$(basename "$2")" in
"""
DBACCESS += "".join(f'{file}) touch "$STATE/made/{word}" ;;\n' for file, word in LEAVES.items())
DBACCESS += "esac\n"


@dataclass
class StandIn:
    """A server of which only dbaccess is seen."""

    folder: Path

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder}:{os.environ['PATH']}"
        settings = {"PATH": path, "STATE": str(self.folder), "INFORMIXDIR": str(self.folder)}
        return subprocess.run(
            command, env=settings | environment, capture_output=True, text=True, check=False
        )

    def script(self, name: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run("bash", str(INFORMIX / name), **environment)

    def done(self) -> list[str]:
        """Return which files ran, in order, each with its database and locale."""
        lines = (self.folder / "done").read_text().splitlines()
        (self.folder / "done").unlink()
        return lines


@pytest.fixture
def server(tmp_path: Path) -> StandIn:
    for folder in ("made", "etc"):
        (tmp_path / folder).mkdir()
    (tmp_path / "etc" / "syscdcv1.sql").touch()
    (tmp_path / "dbaccess").write_text(DBACCESS)
    (tmp_path / "dbaccess").chmod(0o755)
    return StandIn(tmp_path)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_has_nothing_to_say(path: Path) -> None:
    assert lint("shellcheck", "--external-sources", path) == ""


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_ends_at_its_first_error_unless_another_shell_sources_it(path: Path) -> None:
    assert ("\nset -euo pipefail\n" in path.read_text()) == (path.name not in SOURCED)


def test_a_fresh_server_gets_everything_in_order_in_the_right_locale(server: StandIn) -> None:
    result = server.script("set_up.sh")
    assert result.returncode == 0, result.stderr
    assert server.done() == [
        "sysadmin sbspace.sql none",
        "- syscdcv1.sql none",
        "- database.sql en_US.utf8",
        "stores tables.sql en_US.utf8",
        "stores demo_data.sql en_US.utf8",
        "stores workload.sql en_US.utf8",
    ]


def test_a_second_run_creates_nothing_that_is_there(server: StandIn) -> None:
    server.script("set_up.sh")
    server.done()
    assert server.script("set_up.sh").returncode == 0
    assert server.done() == ["stores tables.sql en_US.utf8", "stores workload.sql en_US.utf8"]


@pytest.mark.slow
@pytest.mark.parametrize("file", [*LEAVES, "tables.sql"])
def test_an_error_ends_the_set_up_and_the_next_run_goes_on_from_there(
    server: StandIn, file: str
) -> None:
    broken = server.script("set_up.sh", BROKEN=file)
    assert broken.returncode != 0
    assert server.done()[-1].split()[1] == file
    assert server.script("set_up.sh").returncode == 0
    assert file in [line.split()[1] for line in server.done()]
    assert server.script("health.sh").returncode == 0


@pytest.mark.parametrize("missing", ["sbspace", "syscdcv1", "stores", "shop_order"])
def test_a_server_is_not_healthy_while_something_is_missing(server: StandIn, missing: str) -> None:
    server.script("set_up.sh")
    (server.folder / "made" / missing).unlink()
    result = server.script("health.sh")
    assert result.returncode == 1
    assert missing in result.stderr


def test_a_server_that_does_not_answer_is_not_healthy(server: StandIn) -> None:
    (server.folder / "dbaccess").write_text(
        "#!/bin/sh\necho 'Shared memory not initialized' >&2\nexit 1\n"
    )
    assert server.script("health.sh").returncode == 1


@pytest.mark.slow
def test_a_health_check_finds_the_servers_environment_by_itself(
    server: StandIn, tmp_path: Path
) -> None:
    """It is run without one, and the image's file reads a variable that need not be set."""
    server.script("set_up.sh")
    environment_file = tmp_path / "informix_inf.env"
    environment_file.write_text(
        'export INFORMIXDIR=/opt LD_LIBRARY_PATH="/opt/lib:${LD_LIBRARY_PATH}"\n'
    )
    for name in ("health.sh", "server.sh"):
        text = (INFORMIX / name).read_text()
        (tmp_path / name).write_text(
            text.replace("/usr/local/bin/informix_inf.env", str(environment_file))
        )
    result = server.run("env", "-u", "INFORMIXDIR", "bash", str(tmp_path / "health.sh"))
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("broken", ["", "database.sql"])
def test_the_start_script_that_sources_the_set_up_goes_on_whatever_happens(
    server: StandIn, tmp_path: Path, broken: str
) -> None:
    sourced = (INFORMIX / "post_init.sh").read_text().replace("/informix-cdc/", f"{INFORMIX}/")
    start = tmp_path / "start.sh"
    start.write_text(f'{sourced}\nfalse\necho "still here: $UNSET_VARIABLE$-"\n')
    result = server.run("bash", str(start), BROKEN=broken)
    assert "still here: " in result.stdout
    assert ("set-up failed" in result.stderr) == bool(broken)
