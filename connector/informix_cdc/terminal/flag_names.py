"""Errors of options on the command line: they name flags, as their user has typed flags.

Rule: the one translation. Errors are worded for the options of the Spark source; an option that the
command has no flag for keeps its name there.
"""

from __future__ import annotations

import re

import click

from informix_cdc.options import PASSWORD_VARIABLE, flag_of, option_rows


def in_flags(text: str) -> str:
    """Return a text in which options that the current command has are named by their flags."""
    context = click.get_current_context(silent=True)
    options = {name for name, _, _ in option_rows()}
    params = context.command.params if context is not None else []
    flags = {each.name: each.opts[0] for each in params if each.name in options}
    return _translated(text, {str(name): flag for name, flag in flags.items()})


def _translated(text: str, flags: dict[str, str]) -> str:
    if not flags:
        return text
    names = "|".join(sorted(flags, key=len, reverse=True))
    # A name in lower case is also a word: it is an option behind "option", in quotes or before "=".
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


def no_such_flag(flag: str, command: str) -> str:
    """Return what there is in place of a flag that a command lacks; empty if that is not known."""
    if flag == "--password":
        return (
            "There is no --password: every user of this host can see the arguments of a command. Set"
            f" {PASSWORD_VARIABLE} in the environment, or give --password-file or --password-command."
        )
    names = {flag_of(name): name for name, _, _ in option_rows()}
    if flag not in names:
        return ""
    return f"{flag} is no flag of {command}. It is option {names[flag]} of the Spark source."
