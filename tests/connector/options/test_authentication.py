"""Where a password comes from, and that nothing of it shows when it does not."""

from __future__ import annotations

import itertools
import pickle
import sys
import traceback
from pathlib import Path

import pytest

from harness.servers.stores import source_options
from informix_capture_client.errors import BadOption
from informix_cdc.options import authentication
from informix_cdc.options.authentication import fetch_password
from informix_cdc.options.source import SourceOptions

SECRET = "s3cret-Wq7"
PYTHON = sys.executable


def parse(environment: dict[str, str] | None = None, **changes: str) -> SourceOptions:
    return SourceOptions.parse(source_options(9088, password="", **changes), environment or {})


def refused(how: SourceOptions) -> str:
    """Return all that an error shows: its text, its facts, its traceback."""
    with pytest.raises(BadOption) as caught:
        fetch_password(how.connection, {})
    assert caught.value.is_temporary  # after a reconnect the next attempt may find one
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown + repr(vars(caught.value)) + repr(pickle.dumps(caught.value))
    return str(caught.value)


@pytest.fixture
def ways(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "secret").write_text("from-file\n")
    return {
        "password": "from-option",
        "passwordFile": str(tmp_path / "secret"),
        "passwordCommand": f"{PYTHON} -c \"print('from-command')\"",
    }


def test_a_password_comes_from_any_option_or_else_from_the_environment(ways: dict[str, str]) -> None:
    environment, found = {"INFORMIX_CDC_PASSWORD": "from-environment"}, []
    for given in [*({name: ways[name]} for name in ways), {}]:
        options = SourceOptions.parse({**source_options(9088, password=""), **given}, environment)
        found.append(fetch_password(options.connection, environment))
    assert found == ["from-option", "from-file", "from-command", "from-environment"]


def test_two_options_that_say_where_the_password_is_are_refused(ways: dict[str, str]) -> None:
    for two in itertools.combinations(ways, 2):
        given = {**source_options(9088, password=""), **{name: ways[name] for name in two}}
        with pytest.raises(BadOption, match="are both set") as caught:
            SourceOptions.parse(given, {"INFORMIX_CDC_PASSWORD": "from-environment"})
        assert all(repr(name) in str(caught.value) for name in two)
        assert "from-option" not in str(caught.value)


def test_a_file_is_read_when_the_password_is_needed_not_before(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("old")
    options = parse(passwordFile=str(secret))
    secret.write_text("new")
    assert fetch_password(options.connection, {}) == "new"
    assert b"new" not in pickle.dumps(options)
    assert b"old" not in pickle.dumps(options)


def test_a_password_of_the_environment_is_kept_nowhere() -> None:
    environment = {"INFORMIX_CDC_PASSWORD": SECRET}
    options = parse(environment)
    assert SECRET.encode() not in pickle.dumps(options)
    assert fetch_password(options.connection, environment) == SECRET


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbfs3cret\r\n", b"s3cret", b"\n s3cret \n\n"],
    ids=["with a byte order mark", "without a line end", "with blanks around it"],
)
def test_what_editors_put_around_a_password_is_no_part_of_it(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(content)
    assert fetch_password(parse(passwordFile=str(tmp_path / "secret")).connection, {}) == "s3cret"


UNUSABLE = [
    (b" \n", "is empty"),
    (b"\xef\xbb\xbf\n", "is empty"),
    (b"s\xe9cret", "is not UTF-8"),
    (b"s3cret\nold-s3cret\n", "has several lines"),
    (b"informix\r\ns3cret", "has several lines"),
]


@pytest.mark.parametrize(("content", "says"), UNUSABLE, ids=repr)
def test_a_file_without_a_password_is_refused_and_not_quoted(
    content: bytes, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    with pytest.raises(BadOption, match=says) as caught:
        parse(passwordFile=str(path))
    assert b"cret" not in pickle.dumps(caught.value)
    assert "that contains only the password" in str(caught.value)


@pytest.mark.parametrize("name", ["passwordFile", "passwordCommand", "maxLatencyMs", "truncate"])
def test_a_password_in_the_wrong_option_is_not_echoed(name: str) -> None:
    with pytest.raises(BadOption, match=f"option '{name}'") as caught:
        parse({"INFORMIX_CDC_PASSWORD": "x"}, **{name: SECRET})
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_command_runs_without_a_shell(tmp_path: Path) -> None:
    options = parse(passwordCommand=f"{PYTHON} -c 'print(\"$HOME;`id`|\")'")
    printed = fetch_password(options.connection, {})
    assert printed == "$HOME;`id`|"


def test_a_command_runs_when_a_password_is_needed_and_not_for_a_look_at_the_options(
    tmp_path: Path,
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\necho {SECRET}\n")
    program.chmod(0o700)
    options = parse(passwordCommand=str(program))
    assert not (tmp_path / "runs").exists()
    assert [fetch_password(options.connection, {}) for _ in range(2)] == [SECRET, SECRET]
    assert (tmp_path / "runs").read_text() == "run\nrun\n"
    assert SECRET.encode() not in pickle.dumps(options)


def test_commands_can_be_switched_off_for_a_driver_that_others_share(tmp_path: Path) -> None:
    options = parse(passwordCommand=f"touch {tmp_path}/done")
    off = {"INFORMIX_CDC_ALLOW_PASSWORD_COMMAND": "no"}
    for refused_by in (
        lambda: fetch_password(options.connection, off),
        lambda: parse(off, passwordCommand=f"touch {tmp_path}/done"),
    ):
        with pytest.raises(BadOption, match="INFORMIX_CDC_ALLOW_PASSWORD_COMMAND=no"):
            refused_by()
    assert not (tmp_path / "done").exists()


FAILING = {
    "fails": (f"echo {SECRET}; echo {SECRET} >&2; exit 3", "exit code 3"),
    "prints nothing": (f"echo {SECRET} >&2", "printed nothing"),
    "prints no text": (f"printf '{SECRET}\\351'", "not UTF-8"),
    "prints without an end": (f"exec yes {SECRET}", "printed more than 64 KiB"),
    "waits": (f"echo {SECRET}; exec sleep 600", "did not end within 0.2 seconds"),
}


@pytest.mark.parametrize("how", FAILING)
def test_a_command_that_gives_no_password_is_named_and_what_it_prints_is_not(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(authentication, "_COMMAND_SECONDS", 0.2 if how == "waits" else 60)
    script, says = FAILING[how]
    program = tmp_path / SECRET
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    assert says in refused(parse(passwordCommand=f"{program} {SECRET}"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("command", ["/no/such/program x", "'half a quote", " ", "a\0b"])
def test_what_is_no_command_is_refused_before_anything_is_opened(command: str) -> None:
    with pytest.raises(BadOption, match="option 'passwordCommand'"):
        parse(passwordCommand=command)
