"""Options, errors and output of the command line: changes, progress, log positions.

Rule: quick to import, also for help pages: modules that only one command needs are loaded by it.
"""

from __future__ import annotations

from informix_cdc.terminal.change_text import as_lines, kind_of, table_of, time_of, to_json
from informix_cdc.terminal.command_text import arguments_for, say_stays_on, say_switched_on
from informix_cdc.terminal.encodings import echo_exactly, echo_json
from informix_cdc.terminal.help_pages import Command, Commands
from informix_cdc.terminal.log_distance_text import distance_text, headroom_text, place_as_json
from informix_cdc.terminal.options import (
    AfterFile,
    OneLineError,
    options_without_tables,
    parse_options,
    source_file_argument,
    source_options,
)
from informix_cdc.terminal.progress import (
    TableProgressShown,
    shown_progress,
    snapshot_text,
    snapshots_of,
    table_progress,
    waiting,
)
from informix_cdc.terminal.screen import (
    TABLES_STOPPED,
    answers,
    counted,
    ended_by_interrupt,
    hanging,
    plain_console,
    require_yes,
    say,
    say_command,
    say_unbroken,
    unbroken,
)
from informix_cdc.terminal.source_files import checked_options, read_source_file, require_flat

__all__ = [
    "TABLES_STOPPED",
    "AfterFile",
    "Command",
    "Commands",
    "OneLineError",
    "TableProgressShown",
    "answers",
    "arguments_for",
    "as_lines",
    "checked_options",
    "counted",
    "distance_text",
    "echo_exactly",
    "echo_json",
    "ended_by_interrupt",
    "hanging",
    "headroom_text",
    "kind_of",
    "options_without_tables",
    "parse_options",
    "place_as_json",
    "plain_console",
    "read_source_file",
    "require_flat",
    "require_yes",
    "say",
    "say_command",
    "say_stays_on",
    "say_switched_on",
    "say_unbroken",
    "shown_progress",
    "snapshot_text",
    "snapshots_of",
    "source_file_argument",
    "source_options",
    "table_of",
    "table_progress",
    "time_of",
    "to_json",
    "unbroken",
    "waiting",
]
