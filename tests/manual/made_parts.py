"""Fill in the parts of the manual that the code knows best: `make docs`.

Rule: a page keeps its own words and order; between two marks stands what the code declares, made from
the declaration, so that every machine makes the same page.

    <!-- make docs: options host port -->    these options, in this order
    <!-- make docs: types -->                what each Informix type becomes
    <!-- make docs: postgresqltypes -->     and in PostgreSQL
    <!-- make docs: codesets -->             the code sets that are supported
    <!-- make docs: events -->               what is logged
    <!-- make docs: metrics -->              the figures of a stream
    <!-- make docs: command tail -->         what a command does, and its flags
    <!-- make docs: statements -->           every statement that is sent to a server, and when
    <!-- make docs: differences -->          what other people's clients show otherwise, and whose it is
    <!-- make docs: example first_mirror --> a program of examples/, without the text above it
    <!-- end -->

A link [`name`](../file.py#L1) leads to the line in which the name is defined.
"""

from __future__ import annotations

import ast
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import click
import pyarrow as pa

from informix_capture_client.locales import CODE_SETS
from informix_capture_client.log_events import EVENTS
from informix_cdc.commands.cli import main as command_line
from informix_cdc.monitoring.figures import ABOUT, FIGURES
from informix_cdc.options import flag_of
from informix_cdc.options.source import option_rows
from informix_cdc.spark.schema import to_spark
from lab.witnesses.known_differences import DIFFERENCES
from manual.sent_statements import statement_lines
from manual.type_table import postgresql_lines, table_lines

ROOT = Path(__file__).resolve().parents[2]
REMEDY = "run `make docs`, or `python -m manual.made_parts` in tests/"
_CODE_LINK = re.compile(r"\[`([\w.]+)`\]\(\.\./([\w/]+\.py)#L\d+\)")
_PART = re.compile(r"(<!-- make docs: (\w+) ?([^\n]*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Return the pages that may have parts made here."""
    docs = ROOT / "docs"
    return [ROOT / "README.md", *sorted([*docs.glob("*.md"), *docs.glob("operations/*.md")])]


def with_made_parts(page: str) -> str:
    """Return a page whose marked parts and links to lines say what the code says.

    Raises:
        ValueError: a mark or a link names something that does not exist.
    """
    made = _PART.sub(lambda found: found[1] + _made(found[2], found[3].split()) + found[5], page)
    return with_lines_of_code(made)


def with_lines_of_code(page: str) -> str:
    """Return a page whose links to a function or class lead to its line.

    Raises:
        ValueError: a file has no definition of that name.
    """

    def line_of(found: re.Match[str]) -> str:
        name, file = found[1], found[2]
        return f"[`{name}`](../{file}#L{_line_of(ROOT / file, name.split('.'))})"

    return _CODE_LINK.sub(line_of, page)


def _line_of(path: Path, names: list[str]) -> int:
    """Return the line of a definition, such as a method of a class."""
    body: Sequence[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
    kinds = (ast.ClassDef, ast.FunctionDef)
    for number, name in enumerate(names):
        defined = [each for each in body if isinstance(each, kinds) and each.name == name]
        if not defined:
            raise ValueError(f"{path.name} does not define {'.'.join(names)}")
        if number == len(names) - 1:
            return defined[0].lineno
        body = defined[0].body
    raise ValueError("a link names nothing")


def options_named(page: str) -> Iterator[str]:
    """Yield the names of the options whose tables a page has."""
    for found in _PART.finditer(page):
        if found[2] == "options":
            yield from found[3].split()


def parts_used(page: str) -> set[str]:
    """Return the names of the parts that a page has."""
    return {found[2] for found in _PART.finditer(page)}


def spark_name(kind: pa.DataType) -> str:
    """Return an Arrow type in Spark's words."""
    return to_spark(pa.schema([("c", kind)]))["c"].dataType.simpleString().upper()


def _made(part: str, names: list[str]) -> str:
    if part not in PARTS:
        raise ValueError(f"no part is called {part!r}, but {', '.join(PARTS)}")
    return "".join(f"{line}\n" for line in PARTS[part](names))


def _options(names: list[str]) -> Iterator[str]:
    declared = {row[0]: row for row in option_rows()}
    if unknown := [name for name in names if name not in declared]:
        raise ValueError(f"no option is called {', '.join(unknown)}")
    yield "| option | default | meaning |"
    yield "|---|---|---|"
    for name, default, meaning in map(declared.__getitem__, names):
        yield f"| `{name}` | {default or '-'} | {meaning} |"


def _postgresql_types(_: list[str]) -> Iterator[str]:
    return postgresql_lines()


def _types(_: list[str]) -> Iterator[str]:
    return table_lines(spark_name)


def _code_sets(_: list[str]) -> Iterator[str]:
    yield "| name | number and other names |"
    yield "|---|---|"
    for name, *others in CODE_SETS.values():
        yield f"| `{name}` | {', '.join(f'`{other}`' for other in others)} |"


def _events(_: list[str]) -> Iterator[str]:
    yield "| event | level | keys | meaning |"
    yield "|---|---|---|---|"
    for event in EVENTS.values():
        level, keys = logging.getLevelName(event.level), ", ".join(f"`{key}`" for key in event.keys)
        yield f"| `{event.name}` | {level.lower()} | {keys} | {event.meaning} |"


def _metrics(_: list[str]) -> Iterator[str]:
    yield "| metric | key in the progress | kind | meaning |"
    yield "|---|---|---|---|"
    for figure in FIGURES:
        metric = f"`{figure.metric}`" if figure.metric else "-"
        yield f"| {metric} | `{figure.progress_key}` | {figure.kind} | {figure.meaning} |"
    yield from (f"| `{name}` | - | gauge | {meaning} |" for name, meaning in ABOUT.items())


def _command(names: list[str]) -> Iterator[str]:
    """Yield what a command's help says, its own flags as a table, those of the source by name."""
    command: click.Command = command_line
    for name in names:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    of_the_source = {name for name, _, _ in option_rows()}
    options = [each for each in command.params if isinstance(each, click.Option)]
    for paragraph in (command.help or "").split("\n\n"):
        yield from ("", " ".join(paragraph.split()))
    shared = [each for each in options if each.name in of_the_source and _is_by_its_name(each)]
    if own := [each for each in options if each not in shared and each.name != "profile"]:
        yield from ("", "| flag | default | meaning |", "|---|---|---|", *map(_flag_row, own))
    if shared:
        flags = (f"`{flag_of(str(each.name))}`" for each in shared)
        yield from ("", f"Options of the source: {', '.join(flags)}.")
    yield ""


def _is_by_its_name(option: click.Option) -> bool:
    return option.opts == [flag_of(str(option.name))]


def _flag_row(option: click.Option) -> str:
    default = option.default if option.show_default else "-"
    words = f" ({', '.join(option.type.choices)})" if isinstance(option.type, click.Choice) else ""
    return f"| `{option.opts[0]}`{words} | {default} | {option.help} |"


def _differences(_: list[str]) -> Iterator[str]:
    yield "| client | difference | cause | workaround |"
    yield "|---|---|---|---|"
    for row in DIFFERENCES.values():
        yield f"| {row.witness} | {row.what} | {row.whose} | {row.remedy} |"


def _example(names: list[str]) -> Iterator[str]:
    for name in names:
        program = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
        _, _, code = program.removeprefix('"""').partition('"""\n\n')
        yield from ("```python", *code.splitlines(), "```")


PARTS: dict[str, Callable[[list[str]], Iterable[str]]] = {
    "options": _options,
    "types": _types,
    "postgresqltypes": _postgresql_types,
    "codesets": _code_sets,
    "events": _events,
    "metrics": _metrics,
    "command": _command,
    "statements": lambda _: statement_lines(),
    "differences": _differences,
    "example": _example,
}


def main() -> None:
    """Write the pages anew."""
    for path in pages():
        old = path.read_text(encoding="utf-8")
        if (new := with_made_parts(old)) != old:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)} is made anew\n")


if __name__ == "__main__":
    main()
