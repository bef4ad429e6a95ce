"""How a command is asked and how an answer is shown: options, errors, changes, places in the log.

Rule: light to import; text only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from informix_capture_client.lazy_names import lazy_names
from informix_cdc.options import flag_of
from informix_cdc.terminal.encodings import echo_exactly, echo_json
from informix_cdc.terminal.help_pages import Command, Commands
from informix_cdc.terminal.options import (
    PASSWORD_HINT,
    OneLineError,
    one_line_errors,
    options_without_tables,
    parse_options,
    source_options,
)
from informix_cdc.terminal.screen import (
    answers,
    counted,
    ended_by_interrupt,
    hanging,
    say,
    say_command,
    say_unbroken,
    unbroken,
    width_of,
)

if TYPE_CHECKING:
    from informix_cdc.terminal.change_text import as_lines, kind_of, table_of, time_of, to_json
    from informix_cdc.terminal.command_text import arguments_for
    from informix_cdc.terminal.console import plain_console
    from informix_cdc.terminal.log_distance_text import (
        distance_text,
        headroom_text,
        place_as_json,
    )
    from informix_cdc.terminal.progress import shown_progress, waiting
    from informix_cdc.terminal.questions import require_yes
    from informix_cdc.terminal.row_logging_text import say_stays_on, say_switched_on
    from informix_cdc.terminal.snapshot_progress import (
        TableProgressShown,
        snapshot_text,
        snapshots_of,
        table_progress,
    )

__all__ = [
    "PASSWORD_HINT",
    "Command",
    "Commands",
    "OneLineError",
    "TableProgressShown",
    "answers",
    "arguments_for",
    "as_lines",
    "counted",
    "distance_text",
    "echo_exactly",
    "echo_json",
    "ended_by_interrupt",
    "flag_of",
    "hanging",
    "headroom_text",
    "kind_of",
    "one_line_errors",
    "options_without_tables",
    "parse_options",
    "place_as_json",
    "plain_console",
    "require_yes",
    "say",
    "say_command",
    "say_stays_on",
    "say_switched_on",
    "say_unbroken",
    "shown_progress",
    "snapshot_text",
    "snapshots_of",
    "source_options",
    "table_of",
    "table_progress",
    "time_of",
    "to_json",
    "unbroken",
    "waiting",
    "width_of",
]

__getattr__ = lazy_names(
    __name__,
    {
        "TableProgressShown": "snapshot_progress",
        "arguments_for": "command_text",
        "as_lines": "change_text",
        "distance_text": "log_distance_text",
        "headroom_text": "log_distance_text",
        "kind_of": "change_text",
        "place_as_json": "log_distance_text",
        "plain_console": "console",
        "require_yes": "questions",
        "say_stays_on": "row_logging_text",
        "say_switched_on": "row_logging_text",
        "shown_progress": "progress",
        "snapshot_text": "snapshot_progress",
        "snapshots_of": "snapshot_progress",
        "table_of": "change_text",
        "table_progress": "snapshot_progress",
        "time_of": "change_text",
        "to_json": "change_text",
        "waiting": "progress",
    },
)
