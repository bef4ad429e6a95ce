"""Parse the text of every option and check them together; one error reports all problems.

Rule: an option that could not be parsed is absent, and rules that need it are skipped. Problems are
reported in the order of the declarations; unknown option names come first.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, NoReturn

from informix_capture_client.errors import BadOption
from informix_cdc.options.authentication import user_to_connect_as
from informix_cdc.options.checks import RULES, RULES_OF_READERS, Rule, check
from informix_cdc.options.declared import DECLARED, GROUPS, OF_READERS, OPTION_NAMES, DeclaredOptions
from informix_cdc.options.declaring import option_name
from informix_cdc.options.transports import chosen_transport

MOST_CHARACTERS = 1_000_000  # of an option
Values = dict[str, dict[str, Any]]
_WITHOUT_SERVER: dict[str, Any] = {"host": "", "server": "", "database": "", "table": ()}
# Names of the same options in other sources of changes: Spark's Kafka source, Debezium, JDBC.
_ELSEWHERE = {
    "snapshot.mode": "initialSnapshot",
    "subscribe": "table",
    "dbtable": "table",
    "table.include.list": "table",
    "column.include.list": "columns",
    "startingoffsets": "startingPosition",
    "startingversion": "startingPosition",
    "maxoffsetspertrigger": "maxRowsPerTrigger",
    "minpartitionnum": "minPartitions",
    "username": "user",
    "hostname": "host",
    "failondataloss": "onDataLoss",
}


def _no_values() -> Values:
    return {name: {} for name in GROUPS}


def read_options(
    given: Mapping[str, str], environment: Mapping[str, str], *, is_stream: bool
) -> Values:
    """Return the value of each option's field, by group.

    Args:
        given: texts by option name, in any case, as Spark passes them.
        environment: variables that may contain the password, or forbid an option.
        is_stream: whether the options are for a stream, which delivers rows and has a spool.

    Raises:
        BadOption: an option is unknown, missing or invalid, or contradicts another one.
    """
    lowered = {key.lower(): value for key, value in given.items()}
    errors = OptionErrors(OPTION_NAMES)
    _refuse_unknown(lowered, errors)
    if lowered.get("captureat"):
        return _read_of_reader(lowered, environment, errors)
    values = _no_values()
    for group, declared in DECLARED:
        with errors.of(option_name(declared)):
            values[group][declared.name] = _read(declared, lowered)
    connection = values["connection"]
    try:
        connection["transport"] = chosen_transport(_readable(values).connection, environment)
    except _NotReadError:
        connection.pop("transport", None)
    readable = _readable(values)
    for name, rules in RULES.items():
        with errors.of(name), contextlib.suppress(_NotReadError):
            for rule in rules:
                if is_stream or not (isinstance(rule, Rule) and rule.is_of_stream):
                    check(name, rule, readable, environment)
    errors.raise_all()
    connection["user"] = user_to_connect_as(readable.connection)
    return values


def _read_of_reader(
    given: Mapping[str, str], environment: Mapping[str, str], errors: OptionErrors
) -> Values:
    """Return the values of a query that reads a shared capture, and needs no server."""
    values = _no_values()
    for group, declared in DECLARED:
        name = option_name(declared)
        with errors.of(name):
            if name in OF_READERS:
                values[group][declared.name] = _read(declared, given)
            elif given.get(name.lower()):
                raise BadOption(
                    f"option {name!r} cannot be used with captureAt: it is an option of the capture.",
                    "Set it in [source] of the capture's file, and remove it here.",
                    option=name,
                )
            else:
                values[group][declared.name] = _WITHOUT_SERVER.get(name, declared.default)
    if not given.get("startingposition"):
        values["stream"]["starting_position"] = "earliest"
    for name in RULES_OF_READERS:
        with errors.of(name), contextlib.suppress(_NotReadError):
            for rule in RULES[name]:
                check(name, rule, _readable(values), environment)
    errors.raise_all()
    return values


def missing_options(given: Mapping[str, str]) -> list[str]:
    """Return the required options that are not given."""
    has = {name.lower() for name, text in given.items() if text}
    required = (option_name(each) for _, each in DECLARED if each.default is MISSING)
    return [name for name in required if name.lower() not in has]


def option_readers() -> dict[str, Callable[[str], Any]]:
    """Return the parser of each option; it raises ValueError for an invalid text."""
    return {option_name(declared): declared.metadata["read"] for _, declared in DECLARED}


class _NotReadError(Exception):
    """A rule needs an option that could not be parsed, which is already reported."""


def _not_read(_: object, name: str) -> NoReturn:
    raise _NotReadError(name)


# The groups of options; a field of an option that could not be parsed is not set.
_READABLE = {name: type(name, (kind,), {"__getattr__": _not_read}) for name, kind in GROUPS.items()}


def _readable(values: Values) -> DeclaredOptions:
    """Return the options that could be parsed."""
    made: dict[str, Any] = {name: object.__new__(kind) for name, kind in _READABLE.items()}
    for name, group in made.items():
        ours = {each.name: each.default for each in fields(GROUPS[name]) if not each.metadata}
        for key, value in {**ours, **values[name]}.items():
            object.__setattr__(group, key, value)
    return DeclaredOptions(**made)


def _read(declared: Field[Any], given: Mapping[str, str]) -> object:
    name = option_name(declared)
    text = given.get(name.lower())
    if not text:
        if declared.default is MISSING:
            raise BadOption(f"option {name!r} is missing.", declared.metadata["doc"], option=name)
        return declared.default
    if len(text) > MOST_CHARACTERS:
        raise BadOption(f"option {name!r} has more than {MOST_CHARACTERS:,} characters.", option=name)
    try:
        return declared.metadata["read"](text)
    except ValueError as reason:
        # without the value, which may be a misplaced password
        raise BadOption(f"option {name!r} {reason}.", option=name) from None


class OptionErrors:
    """Collects the errors in the options of a query.

    Args:
        names: of all options, in the order of their declarations.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._found: dict[str, tuple[int, BadOption]] = {}  # by text, to report duplicates once

    @contextlib.contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Record an error raised in the block, which is about option `name`."""
        try:
            yield
        except BadOption as reason:
            place = self._names.index(name) if name in self._names else -1
            self._found.setdefault(reason.message, (place, reason))

    def raise_all(self) -> None:
        """Raise the recorded errors.

        Raises:
            BadOption: the only error, or one that lists all of them.
        """
        found = [reason for _, reason in sorted(self._found.values(), key=lambda each: each[0])]
        if len(found) == 1:
            raise found[0]
        if found:
            listed = (f"({n}) {each.message} {each.remedy}".rstrip() for n, each in enumerate(found, 1))
            raise BadOption(f"{len(found)} options are invalid: {' '.join(listed)}")


def _refuse_unknown(given: Mapping[str, str], errors: OptionErrors) -> None:
    """Record each unknown option name, with the likely intended one."""
    by_lower_case = {name.lower(): name for name in OPTION_NAMES}
    for key in given:
        if key not in by_lower_case:
            with errors.of(key):
                raise BadOption(
                    f"option {key!r} is not known.", _instead_of(key, by_lower_case), option=key
                )


def _instead_of(key: str, names: Mapping[str, str]) -> str:
    if key in _ELSEWHERE:
        return f"Use {_ELSEWHERE[key]!r}."
    near = difflib.get_close_matches(key, names, n=1)  # similarity of at least 0.6
    if near:
        return f"Did you mean {names[near[0]]!r}?"
    if key.startswith("snapshot"):
        return "Use 'initialSnapshot': all, or a list of tables (docs/pipelines.md)."
    return f"The options are: {', '.join(names.values())}."
