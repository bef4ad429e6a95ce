"""From GitHub's Markdown to that of Python-Markdown, where the two differ.

GitHub reads CommonMark with tables. Python-Markdown wants the content of a list item indented by four
columns for each level, shows `\\|` of a table's code as it is written, and takes a table that follows a
comment without a blank line for a part of the comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_FENCED = re.compile(r"^( *)(```+)[^\n]*\n.*?^ *\2 *$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r" *(?:[-*+]|\d+\.) +(?=\S)")
# A number within a paragraph, such as a version where a line begins, is no item.
_BEGINS_IN_PARAGRAPH = re.compile(r"(?:[-*+]|1\.) +\S")
_CODE = re.compile(r"`[^`\n]+`")


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return a text with `change` applied to what is not in a fenced block."""
    parts, end = [], 0
    for block in _FENCED.finditer(text):
        parts += [change(text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, change(text[end:])])


def for_the_generator(text: str) -> str:
    """Return a page of GitHub's Markdown as Python-Markdown has to be given it."""
    plain = outside_code(text, lambda part: _plain_tables(_COMMENT.sub("\n", part)))
    return "\n".join(_with_wide_lists(plain.split("\n")))


def _plain_tables(part: str) -> str:
    lines = part.split("\n")
    return "\n".join(_code_without_escapes(line) if line.startswith("|") else line for line in lines)


def _code_without_escapes(row: str) -> str:
    return _CODE.sub(lambda found: found[0].replace("\\|", "|"), row)


def _with_wide_lists(lines: list[str]) -> Iterator[str]:
    """Yield lines with four columns for each list item that they are in, instead of the marker's width.

    `columns` are those at which the contents of the open items begin. A line to the left of them ends
    items, unless it continues a paragraph. An item that has more than one paragraph is loose.
    """
    columns: list[int] = []
    fence, after_blank, is_loose = "", True, False
    for line in lines:
        text = line.lstrip()
        if not text:
            after_blank = is_loose = True
            yield ""
            continue
        can_begin = after_blank or columns or _BEGINS_IN_PARAGRAPH.match(line)
        item = _ITEM.match(line) if not fence and can_begin else None
        # Without a blank line it would continue the paragraph above.
        needs_blank = item and not after_blank and (is_loose or not columns)
        if not fence and (item or after_blank or text.startswith(("```", "#"))):
            indent = len(line) - len(text)
            columns = [column for column in columns if column <= indent]
        if needs_blank:
            yield ""
        base = columns[-1] if columns else 0
        yield " " * 4 * len(columns) + (text if item else _from(line, base))
        fence = _fence_after(fence, text)
        if item:
            columns.append(item.end())
            is_loose = False
        after_blank = False


def _from(line: str, column: int) -> str:
    return line.lstrip() if not line[:column].isspace() and column else line[column:]


def _fence_after(fence: str, text: str) -> str:
    if fence:
        return "" if text.rstrip() == fence else fence
    opened = re.match(r"```+", text)
    return opened[0] if opened else ""
