"""Replace option names in errors by the flags of the command line.

Rule: the only place that translates. Errors use the option names of the Spark source; an option without
a flag in the current command keeps its name.
"""

from __future__ import annotations

import re

import click

from informix_cdc.options import PASSWORD_VARIABLE, flag_of, option_rows


def in_flags(text: str) -> str:
    """Return a text with the options of the current command replaced by their flags."""
    context = click.get_current_context(silent=True)
    if context is None:
        return text
    has_arguments = any(each.name == "tables" for each in context.command.params)
    return _translated(
        text, _flags_of(context) | ({"table": "argument TABLE"} if has_arguments else {})
    )


def _flags_of(context: click.Context) -> dict[str, str]:
    """Return the flags of a command by option name."""
    options = {name for name, _, _ in option_rows()}
    return {each.name: each.opts[0] for each in context.command.params if each.name in options}


def _translated(text: str, flags: dict[str, str]) -> str:
    if not flags:
        return text
    names = "|".join(sorted(flags, key=len, reverse=True))
    # A lower-case name is also a plain word: it is an option only after "option", in quotes or before
    # "=".
    camel = "|".join(name for name in flags if name != name.lower()) or "(?!)"
    found = re.compile(
        rf"(?:\boptions? )?'(?P<quoted>{names})'"
        rf"|\boptions? (?P<listed>(?:{names})(?:(?:, or |, | and | or )(?:{names}))*)\b"
        rf"|(?<![\w.'-])(?P<set>{names})(?==[\w'\"])"
        rf"|(?<![\w.'-])(?P<camel>{camel})\b"
    )
    one = re.compile(rf"\b(?:{names})\b")

    def replaced(match: re.Match[str]) -> str:
        name = next(text for text in match.groups() if text)
        return one.sub(lambda each: flags[each[0]], name)

    return found.sub(replaced, text)


def no_such_flag(flag: str, context: click.Context) -> str:
    """Return what to use instead of an unknown flag; empty if that is unknown."""
    command = context.info_name or ""
    if flag == "--password":
        return (
            "There is no flag --password, because every user of this host can see the arguments"
            f" of a command. Set {PASSWORD_VARIABLE} in the environment, or give --password-file"
            " or --password-command."
        )
    names = {
        known.lower(): name for name, _, _ in option_rows() for known in (f"--{name}", flag_of(name))
    }
    name = names.get(flag.lower(), "")
    if not name:
        return ""
    here = f"{flag} is not a flag of {command}."
    flags = _flags_of(context)
    if name in flags:
        return f"{here} Use {flags[name]}."
    known = f"{here} It is option {name} of the Spark source."
    return f"{known} {_INSTEAD.get((command, name), '')}".rstrip()


_WHOLE_SERVER = "Omit it: {} covers the whole server."
_ARGUMENTS = "Give the tables as arguments: {} informix.orders."
# Alternatives that a command has to an option.
_INSTEAD = {
    ("tail", "initialSnapshot"): "Use --snapshot.",
    **{(word, "table"): _ARGUMENTS.format(word) for word in ("release", "acquire")},
    **{
        (word, name): _WHOLE_SERVER.format(word)
        for word in ("status",)
        for name in ("database", "table")
    },
}
