"""`informix-cdc init FILE.toml`: write the configuration file of a mirror of a server's tables.

Rule: the file is complete: with a password, `informix-cdc mirror FILE.toml` starts. Nothing that others
have written is overwritten.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from informix_capture_client.errors import BadOption
from informix_capture_client.shell_commands import shell_word
from informix_cdc.lake import MirrorPlan, PlanProblem, checked_settings, plan_mirror, problems_by_kind
from informix_cdc.options import EXCLUDED, PASSWORD_VARIABLE, names
from informix_cdc.terminal import counted, parse_options, say, say_command

_WIDTH = 100
_OWNER_IN_NAMES = "{owner}_{table}"


def write_configuration(path: Path, given: Mapping[str, str | None], into: str) -> None:
    """Write the configuration of a mirror of all tables that can be mirrored.

    Args:
        path: to be created.
        given: options of the source, by name.
        into: place of the tables; empty: below the current folder.

    Raises:
        BadOption: the file exists, or an option is invalid.
        InformixCdcError: the server cannot be reached.
    """
    if path.exists():
        raise BadOption(f"{path} exists already.", "Choose another name, or remove it.")
    source = {name: text for name, text in given.items() if text is not None}
    options = parse_options(source, is_stream=False)
    settings = {
        "into": into or str(Path.cwd() / "lake" / options.connection.database),
        "checkpoint": str(Path.cwd() / "checkpoints" / options.connection.database),
    }
    plan = plan_mirror(checked_settings(settings, source), source)
    names = [target.name.lower() for target in plan.targets]
    if len({*names}) < len(names):
        settings["table_name"] = _OWNER_IN_NAMES
        plan = plan_mirror(checked_settings(settings, source), source)
    text = "\n".join(_lines(path, plan, settings, source)) + "\n"
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    _say_next(path, plan)


def _say_next(path: Path, plan: MirrorPlan) -> None:
    excluded, settled = _sorted(plan)
    names = {each.table for each in excluded}
    tables = {target.source for target in plan.targets} - names
    say(f"{path}: {counted(len(tables), 'table')} of {plan.database}.")
    if settled:
        say(f"{counted(len(settled), 'table')} without a key: only changes are kept, see the file.")
    if excluded:
        say(f"{counted(len(names), 'table')} excluded, see the file.")
    for each in plan.problems:
        if not each.table:
            say(f"Problem: {each.message} {each.remedy}")
    say("Next, see what it will do, then start it:")
    say_command("mirror", str(path), "--plan")
    say_command("mirror", str(path))


def _sorted(plan: MirrorPlan) -> tuple[list[PlanProblem], list[PlanProblem]]:
    """Return problems that exclude tables, and those of other tables that settings solve."""
    excluded = [each for each in plan.problems if each.table and not each.settings]
    names = {each.table for each in excluded}
    settled = [each for each in plan.problems if each.settings and each.table not in names]
    return excluded, settled


def _lines(
    path: Path, plan: MirrorPlan, settings: Mapping[str, str], source: Mapping[str, str]
) -> Iterator[str]:
    name = shell_word(str(path))
    yield f"# A mirror of {plan.database} on {plan.server}. Written by informix-cdc init."
    yield f"# informix-cdc mirror {name} starts it; all settings: docs/lake.md"
    for key, comment in (
        ("into", "a folder, or a URL such as s3://bucket/stores"),
        ("checkpoint", "on a local disk: it has the spool too"),
        ("table_name", "two owners have tables of one name"),
    ):
        if key in settings:
            yield f"{key} = {_toml(settings[key])}  # {comment}"
    yield '# retain = "7 days"         # how long earlier versions of the tables can be read'
    yield '# trigger = "10 seconds"    # default: as fast as possible'
    yield ""
    yield "[source]  # all options: docs/options.md"
    rows = sum(plan.estimates.values())
    about = counted(len(plan.targets), "table") + (f", about {counted(rows, 'row')}" if rows else "")
    excluded, settled = _sorted(plan)
    for key, value in source.items():
        if key == "table" and excluded:
            yield from _tables(excluded, value, about)
        else:
            yield f"{key} = {_toml(value)}" + (f"  # {about}" if key == "table" else "")
    if settled:
        yield 'snapshotWithoutKey = "lock"  # tables without a key are locked while they are read'
    if not source.keys() & {"passwordFile", "passwordCommand"}:
        yield f"# The password: {PASSWORD_VARIABLE} in the environment, or"
        yield '# passwordFile = "/run/secrets/informix"'
    for problems in problems_by_kind(settled):
        yield from _settled(problems)


def _tables(problems: Sequence[PlanProblem], given: str, about: str) -> Iterator[str]:
    """Yield option table, with the excluded tables and the reason for each."""
    yield f"table = [  # {about}"
    for name in names(given):
        yield f"  {_toml(name)},"
    yield "  # These cannot be mirrored as they are:"
    for each in {each.table: each for each in problems}.values():
        yield from _comment(f"{each.message} {each.remedy}", "  # ")
        yield f"  {_toml(EXCLUDED + each.table)},"
    yield "]"


def _settled(problems: Sequence[PlanProblem]) -> Iterator[str]:
    yield ""
    yield from _comment(
        "Tables without a key: each change is appended. To keep such a table equal instead, give it"
        ' a key of columns that are unique and never NULL, as in key = "order_num, line", and remove'
        " keep.",
        "# ",
    )
    for each in problems:
        yield ""
        yield f"[tables.{_toml(each.table)}]"
        yield each.settings


def _comment(text: str, prefix: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=prefix, subsequent_indent=prefix)


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a basic string of TOML has the escapes of JSON
