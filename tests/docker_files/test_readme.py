"""docker/README.md: its commands name what exists, and it does not claim what nobody has seen."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from docker_files.compose_file import README, ROOT, compose, services, uses_informix
from informix_cdc.commands.cli import main as command_line

TEXT = README.read_text()
COMMANDS = [
    [word for word in shlex.split(line) if not re.match(r"[A-Z_]+=", word)]
    for block in re.findall(r"```\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
]
COMPOSE_COMMANDS = [words for words in COMMANDS if words[:2] == ["docker", "compose"]]
FLAGS = {
    "up": {"--build", "--detach", "--wait"},
    "run": {"--rm", "--detach", "--no-deps"},
    "exec": set(),
}


def ids(words: list[str]) -> str:
    return " ".join(words[4:7])


def split(words: list[str]) -> tuple[str, list[str], list[str]]:
    """Return a compose command's verb, its flags and what follows them."""
    words = words[6:] if words[4] == "--profile" else words[4:]
    verb, *rest = words
    flags = [word for word in rest if word in FLAGS[verb]]
    return verb, flags, rest[len(flags) :]


def test_it_says_that_nobody_has_run_it() -> None:
    assert "**Not yet run against a live server.**" in TEXT


@pytest.mark.parametrize("words", COMPOSE_COMMANDS, ids=ids)
def test_its_commands_are_about_services_that_exist(words: list[str]) -> None:
    assert words[2:4] == ["-f", "docker/compose.yaml"]
    verb, _, rest = split(words)
    named = rest if verb == "up" else rest[:1]
    assert [name for name in named if name not in services()] == []


OF_OURS = {"tail", "doctor", "gbase8s-tail", "gbase8s-doctor"}


@pytest.mark.parametrize("words", [w for w in COMPOSE_COMMANDS if OF_OURS & {*w}], ids=ids)
def test_what_it_gives_to_a_command_of_ours_is_taken(words: list[str]) -> None:
    _, _, (service, *given) = split(words)
    program, name, *fixed = services()[service]["entrypoint"]
    assert program == "informix-cdc"
    own = [word for word in fixed if not word.startswith("--password-file")]
    command_line.commands[name].make_context(name, [*own, *(given or services()[service]["command"])])


def test_a_client_of_another_version_does_not_start_the_server_it_depends_on() -> None:
    for verb, flags, rest in map(split, COMPOSE_COMMANDS):
        depends_on = services()[rest[0]].get("depends_on", {}) if verb == "run" else {}
        hosts = {word.removeprefix("host=") for word in rest if word.startswith("host=")}
        if depends_on and hosts:
            assert ("--no-deps" in flags) == (not hosts & depends_on.keys()), rest


def test_every_other_command_copies_a_file_that_exists() -> None:
    others = [words for words in COMMANDS if words not in COMPOSE_COMMANDS]
    assert [words[0] for words in others] == ["cp"]
    assert (ROOT / others[0][1]).is_file()


def made(word: str) -> list[str]:
    """Return what make would run."""
    command = ["make", "--no-print-directory", "--dry-run", word]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return shlex.split(result.stdout)


def test_the_profiles_that_it_names_exist() -> None:
    named = {words[5] for words in COMPOSE_COMMANDS if words[4] == "--profile"}
    assert named
    assert named <= {profile for each in services().values() for profile in each.get("profiles", [])}


def test_make_up_starts_the_server_before_anything_is_built() -> None:
    """As its second and third command, so that an image without a driver keeps no server down."""
    assert made("up") == COMPOSE_COMMANDS[0] + COMPOSE_COMMANDS[1]
    assert "--build" not in COMPOSE_COMMANDS[0]


def test_make_down_leaves_no_volume_behind_that_a_new_server_could_not_use() -> None:
    assert made("down")[4:] == ["--profile", "*", "down", "--volumes"]


def rows(heading: str) -> dict[str, str]:
    table = TEXT.partition(f"| {heading} |")[2].partition("\n\n")[0]
    return {
        name: row
        for row in table.splitlines()[2:]
        for name in re.findall(r"`([\w.-]+)`", row.split("|")[1])
    }


def test_its_table_of_services_is_the_compose_file() -> None:
    shown = {name: re.findall(r"`(\S+)`", row.split("|")[2]) for name, row in rows("service").items()}
    profiles = {name: each.get("profiles", []) for name, each in services().items()}
    assert shown == profiles


def test_its_ports_are_those_of_the_compose_file() -> None:
    published = {
        each.rpartition(":")[0] for one in services().values() for each in one.get("ports", [])
    }
    assert set(re.findall(r"127\.0\.0\.1:\d+", TEXT)) == published


def test_the_tags_that_it_gives_a_source_for_are_those_in_use() -> None:
    tags = {each["image"].rpartition(":")[2] for each in services().values() if uses_informix(each)}
    assert len(tags) == 3
    believed = TEXT.partition("## What is believed of the images")[2]
    assert [tag for tag in tags if f"`{tag}`" not in believed] == []
    assert compose()["name"] == "informix-cdc"
