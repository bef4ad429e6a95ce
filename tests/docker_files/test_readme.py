"""docker/README.md agrees with the compose file, the command line and the Makefile."""

from __future__ import annotations

import re
import shlex

import pytest

from docker_files.docker_folder import COMPOSE, DOCKER, SERVICES, VARIABLE, every, run
from informix_cdc.commands.cli import main as command_line

README = (DOCKER / "README.md").read_text()
LINES = "".join(re.findall(r"```\n(.*?)```", README, re.DOTALL)).splitlines()
COPY, *COMMANDS = [shlex.split(re.sub("^[A-Z_]+=.*? ", "", line)) for line in LINES]
FLAGS = {"up": {"--build", "--detach", "--wait"}, "run": {"--rm", "--detach", "--no-deps"}}


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[4:8]))
def test_a_command_names_services_that_exist_and_options_that_we_accept(words: list[str]) -> None:
    assert words[:4] == ["docker", "compose", "-f", "docker/compose.yaml"]
    if words[4] == "--profile":
        assert words[5] in every("profiles")
        words = words[2:]
    verb, rest = words[4], words[5:]
    while rest and rest[0] in FLAGS.get(verb, ()):
        rest = rest[1:]
    assert set(rest if verb == "up" else rest[:1]) <= SERVICES.keys()
    if verb == "run" and "entrypoint" in (service := SERVICES[rest[0]]):
        program, name, *own = service["entrypoint"]
        own += rest[1:] or service["command"]
        options = command_line.commands[name].make_context(name, own).params
        assert (program, options["host"] in SERVICES) == ("informix-cdc", True)


def test_make_up_and_down_run_the_commands_of_the_readme() -> None:
    """Up starts the server before it builds; down removes volumes that no new server can use."""
    up, down = (run("make", "--silent", "--dry-run", word).stdout for word in ("up", "down"))
    assert shlex.split(up) == COMMANDS[0] + COMMANDS[1]
    assert "build" not in SERVICES["informix"]
    assert shlex.split(down) == [*COMMANDS[0][:4], "--profile", "*", "down", "--volumes"]


def rows(heading: str) -> dict[str, str]:
    """Return the second column of a table by the names in its first."""
    table = README.partition(f"| {heading} |")[2].partition("\n\n")[0]
    cells = [row.split("|")[1:3] for row in table.splitlines()[2:]]
    return {name: second for first, second in cells for name in re.findall(r"`([\w.-]+)`", first)}


def test_its_services_profiles_and_ports_are_those_of_the_compose_file() -> None:
    shown = {name: re.findall(r"`(\S+)`", profiles) for name, profiles in rows("service").items()}
    assert shown == {name: each.get("profiles", []) for name, each in SERVICES.items()}
    published = {port.rpartition(":")[0] for port in every("ports")}
    assert set(re.findall(r"127\.0\.0\.1:\d+", README)) == published


def test_its_variables_and_those_of_the_example_are_those_of_the_compose_file() -> None:
    found = list(VARIABLE.finditer((DOCKER / "compose.yaml").read_text()))
    used = {match["name"] for match in found} | {
        each["environment"] for each in COMPOSE["secrets"].values()
    }
    assert rows("variable").keys() == used
    assert COPY == ["cp", "docker/.env.example", "docker/.env"]
    example = set(re.findall(r"^(\w+)=", (DOCKER / ".env.example").read_text(), re.MULTILINE))
    assert example == used - {match["name"] for match in found if match["default"]}
