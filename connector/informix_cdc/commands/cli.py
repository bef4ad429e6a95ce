"""The command line `informix-cdc`.

Rule: it starts quickly. Each command imports what it needs when it runs; only the demo loads Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click
from click.core import ParameterSource

from informix_cdc.commands.db2 import db2
from informix_cdc.commands.playground import demo, emulator
from informix_cdc.options import CONNECTION, SourceOptions
from informix_cdc.terminal import (
    TABLES_STOPPED,
    AfterFile,
    Commands,
    OneLineError,
    parse_options,
    source_file_argument,
)
from informix_cdc.terminal import source_options as options_of_the_source
from informix_cdc.version import __version__

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _of_file(path: Path) -> dict[str, Any]:
    from informix_cdc.commands.configuration import of_commands

    return of_commands(path)


_TABLES = ("database", "table")
_COLUMNS = ("columns", "mask", "maskKeyFile", "unsupportedColumns", "lobs", "simpleLobs")
_LARGE_OBJECTS = ("lobMaxBytes", "lobReadSeconds")
_VALUES = ("floatingDecimal", "intervals", "trailingBlanks", "badCharacters")
_LOG_READING = ("maxTransactionMemoryBytes",)
_SNAPSHOTS = (
    *("initialSnapshot", "snapshotKey", "snapshotWhere", "snapshotWithoutKey"),
    "heartbeatTable",
)
_DRIVER_HOST = ("spoolPath", "maxSpoolBytes", "delivery", "metricsAddress")
_HEADINGS = {
    "Connection": CONNECTION,
    "Tables and columns": (*_TABLES, *_COLUMNS, *_VALUES),
    "Large objects": _LARGE_OBJECTS,
    "Snapshots": (*_SNAPSHOTS, "snapshotChunkRows"),
    "Reading the log": (*_LOG_READING, "maxReconnectSeconds"),
    "On the driver's host": _DRIVER_HOST,
}
source_options = partial(options_of_the_source, load=_of_file, headings=_HEADINGS)
# Of a command that writes such a file.
connection_options = partial(options_of_the_source, load=None, headings=_HEADINGS)
# Options of the commands that switch row logging; they take the tables as arguments.
_ALTERED_TABLES = ("database",)


_AS_JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of text."
)


def _checkpoints(which: str, *, required: bool = False) -> Callable[[_Function], _Function]:
    meaning = f"checkpointLocation of a query {which}; can be repeated."
    return click.option(
        "--checkpoint",
        "checkpoints",
        multiple=True,
        required=required,
        metavar="PLACE",
        help=meaning,
    )


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="informix-cdc")
def main() -> None:
    """Change data capture from IBM Informix into Spark.

    New here? `informix-cdc demo` runs everything on one host and needs no Informix server.
    """


@main.command(short_help="Print committed changes as they happen, without Spark.")
@source_options(
    *(CONNECTION, _TABLES, _COLUMNS, _LARGE_OBJECTS, _VALUES, _LOG_READING),
    also=(*_SNAPSHOTS[1:4], "snapshotChunkRows", "maxReconnectSeconds"),
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="table (readable text), or json (one object per line). json is lossless; decimals, and"
    " integers beyond 2^53, are strings.",
)
@click.option("--limit", type=click.IntRange(1), help="Stop after this number of rows.")
@click.option(
    "--from",
    "startingPosition",
    metavar="PLACE",
    default="latest",
    show_default=True,
    help="Where to start: latest, earliest, or a position. latest is now, earliest the oldest log file;"
    " positions such as 40:0x18 are printed by status and acquire.",
)
@click.option(
    "--no-switch",
    is_flag=True,
    help="Fail if full row logging of a table is off.",
)
@click.option("--yes", "is_sure", is_flag=True, help="Switch full row logging on without asking.")
@click.option("--snapshot", is_flag=True, help="Print the existing rows too, while changes stream.")
def tail(
    output_format: str,
    limit: int | None,
    no_switch: bool,
    is_sure: bool,
    snapshot: bool,
    **given: str | None,
) -> None:
    """Print committed changes as they happen, without Spark.

    Starts with the changes committed from now on, unless --from or --snapshot is given. Press Ctrl-C to
    stop. Capture requires full row logging of the tables. If it is off, tail asks for confirmation and
    switches it on; the server then refuses ALTER TABLE until `informix-cdc release` switches it off.
    """
    from informix_cdc.commands.tail import permission, print_changes, with_spool

    if no_switch and is_sure:
        raise click.UsageError("--yes and --no-switch are mutually exclusive.")
    may_switch = permission(may_switch=not no_switch, is_sure=is_sure)
    with with_spool(given, snapshot=snapshot) as texts:
        print_changes(parse_options(texts), output_format, limit, may_switch)


@main.command(short_help="Check everything that a stream needs.")
@source_options(*(CONNECTION, _TABLES, _COLUMNS, _LARGE_OBJECTS, _SNAPSHOTS, _DRIVER_HOST))
@_AS_JSON
def doctor(as_json: bool, **given: str | None) -> None:
    """Check driver, server, tables and this host, and print how to fix what is wrong.

    Changes nothing. Run it on the host of Spark's driver: it also checks Spark, Java, the Python of the
    workers, the jar of the reader in the JVM, the spool folder and the ports. Each check reports ok,
    warning, failure, or not checked (because an earlier check failed). Exit code 0: no failure; 1: at
    least one failure; 2: an option is invalid.
    """
    from informix_cdc.commands.doctor import print_findings

    raise SystemExit(print_findings(parse_options(given), as_json=as_json))


@main.command(short_help="Switch full row logging of tables off.")
@source_options(CONNECTION, _ALTERED_TABLES)
@click.argument("tables", cls=AfterFile, nargs=-1, required=True, metavar="TABLE...")
@_checkpoints("that has captured a TABLE")
@click.option(
    "--no-checkpoint", is_flag=True, help="Confirm that no query needs the changes of these tables."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation. All checks still apply.")
def release(
    tables: tuple[str, ...],
    checkpoints: tuple[str, ...],
    no_checkpoint: bool,
    yes: bool,
    **given: str | None,
) -> None:
    """Switch full row logging of each TABLE (owner.table) off, when no query needs it any more.

    Fails if a session captures a TABLE, or if the stream of a checkpoint still has it. To run DDL on a
    captured table, use informix-cdc alter.
    """
    from informix_cdc.commands import release as release_command

    of_checkpoints = click.get_current_context().get_parameter_source("checkpoints")
    if no_checkpoint and of_checkpoints is ParameterSource.DEFAULT_MAP:
        checkpoints = ()  # a flag takes precedence over the file
    release_command.release(
        _options_of(tables, given), checkpoints, needs_no_checkpoint=no_checkpoint, is_sure=yes
    )


@main.command(short_help="Run DDL on captured tables.")
@source_options(CONNECTION, ["database", "snapshotKey", "snapshotWithoutKey"])
@click.argument("statement", cls=AfterFile, default="", metavar="[STATEMENT]")
@_checkpoints("that captures one of the tables", required=True)
@click.option(
    "--spool",
    "spools",
    multiple=True,
    metavar="FOLDER",
    help="spoolPath of the query, or of the capture it reads; one for each --checkpoint, in their"
    " order. Default: spool in the checkpoint.",
)
@click.option(
    "--file",
    "script",
    type=click.File(encoding="utf-8"),
    help="Script of statements separated by semicolons, instead of STATEMENT.",
)
@click.option(
    "--from",
    "first",
    type=click.IntRange(1),
    metavar="NUMBER",
    help="Skip the statements before this one: they have run before.",
)
@click.option(
    "--begin",
    "tables",
    multiple=True,
    metavar="TABLE",
    help="Prepare a table (owner.table) for DDL that another program runs; can be repeated.",
)
@click.option("--end", is_flag=True, help="The DDL after --begin has run: capture the tables again.")
@click.option(
    "--accept-gap",
    is_flag=True,
    help="Do not read the tables again, although their consumers will lack changes.",
)
@click.option("--dry-run", is_flag=True, help="Check everything and print the steps; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--no-wait", is_flag=True, help="Do not wait until the rows have been read again.")
def alter(
    statement: str,
    checkpoints: tuple[str, ...],
    spools: tuple[str, ...],
    script: TextIO | None,
    first: int | None,
    tables: tuple[str, ...],
    end: bool,
    accept_gap: bool,
    dry_run: bool,
    yes: bool,
    no_wait: bool,
    **given: str | None,
) -> None:
    """Run STATEMENT, or a script, that changes the definition of captured tables.

    The tables leave the stream, are altered, return, and their rows are read again; the other tables
    continue. If alter is interrupted, run it again: it continues where it was.
    """
    from informix_cdc.commands import alter as alter_command
    from informix_checkpoints.running_streams import RunningStream

    text = script.read() if script else None
    change = alter_command.change_of(
        statement, text, first or 0, tables, is_end=end, accepts_gap=accept_gap
    )
    if spools and len(spools) != len(checkpoints):
        raise click.UsageError("Give one --spool for each --checkpoint, in their order, or none.")
    pairs = zip_longest(checkpoints, spools, fillvalue="")
    streams = [RunningStream.of(checkpoint, spool) for checkpoint, spool in pairs]
    alter_command.alter(
        _options_of(("informix.x",), given),
        change,
        streams,
        is_dry=dry_run,
        is_sure=yes,
        waits=not no_wait,
    )


@main.command(short_help="Switch full row logging of tables on.")
@source_options(CONNECTION, _ALTERED_TABLES)
@click.argument("tables", cls=AfterFile, nargs=-1, required=True, metavar="TABLE...")
def acquire(tables: tuple[str, ...], **given: str | None) -> None:
    """Switch full row logging of each TABLE on and print the position from which it is on.

    Use that position as startingPosition of a new stream with a new checkpoint. acquire cannot detect
    whether someone else has switched row logging off and on again: changes made in between are missing.
    """
    from informix_cdc.commands import acquire as acquire_command

    acquire_command.acquire(_options_of(tables, given))


def _options_of(tables: tuple[str, ...], given: dict[str, str | None]) -> SourceOptions:
    # Row logging is switched for tables with columns that cannot be captured, too.
    of_switches = {"table": ",".join(tables), "unsupportedColumns": "omit-following"}
    return parse_options({**given, **of_switches}, is_stream=False)


@main.command(short_help="Show a mirror's tables, sessions, the log, and lag.")
@source_options(CONNECTION, _LARGE_OBJECTS)
@_checkpoints("whose lag and headroom to show")
@_AS_JSON
@click.option(
    "--watch",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    help="Repeat every SECONDS until Ctrl-C.",
)
@click.option(
    "--row-logging",
    is_flag=True,
    help="List instead all tables with full row logging on, and how to switch it off.",
)
@click.option(
    "--offsets",
    is_flag=True,
    help="Show the offsets and what a restart needs. Asks a server only if flags"
    " or FILE.toml name one.",
)
@click.option(
    "--spool-path",
    default="",
    metavar="FOLDER",
    help="With --offsets: spoolPath of the query. Its content is shown too.",
)
def status(
    checkpoints: tuple[str, ...],
    as_json: bool,
    watch: float | None,
    row_logging: bool,
    offsets: bool,
    spool_path: str,
    **given: str | None,
) -> None:
    """Show a mirror's tables, a server's capture sessions and log, and the lag of checkpoints.

    With the FILE.toml of a mirror, running or not: each table with its state, rows, last change and
    last verification. Exit code 3: a table has stopped; 1: the server cannot be asked.

    Lag is the log between a checkpoint and the end of the log. Headroom is what the server can still
    write before it overwrites the checkpoint's restart position.
    """
    from informix_cdc.commands.row_logged_tables import print_row_logged
    from informix_cdc.commands.status import print_status
    from informix_cdc.terminal import options_without_tables

    context = click.get_current_context()
    of_file = context.default_map or {}
    mirror = of_file.get("mirror")
    if offsets and not checkpoints:
        raise click.UsageError("--offsets requires --checkpoint.")
    asks_nobody = bool(mirror and of_file.get("captureAt"))
    asks_nobody |= offsets and not _is_server_named(context, given)
    options = None if asks_nobody else options_without_tables(given)
    if row_logging and options is not None:
        print_row_logged(options, as_json=as_json)
        return
    raise SystemExit(
        print_status(
            options,
            checkpoints,
            mirror,
            spool_path if offsets else None,
            as_json=as_json,
            watch_seconds=watch,
        )
    )


def _is_server_named(context: click.Context, given: Iterable[str]) -> bool:
    """Return whether a flag names a server: environment variables alone must not connect."""
    sources = {context.get_parameter_source(name) for name in given}
    return not sources.isdisjoint((ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP))


@main.command(short_help="Estimate log growth, spool and waiting times.")
@source_options(CONNECTION, _TABLES)
@click.option(
    "--seconds",
    "sample_seconds",
    type=click.FloatRange(1, 86_400),
    default=60,
    show_default=True,
    help="Time for which changes are counted. Choose a busy time of the day.",
)
@click.option(
    "--outage-hours",
    type=click.FloatRange(0, 8760),
    default=72,
    show_default=True,
    help="The longest time for which Spark, or the capture, may be down.",
)
@_AS_JSON
def size(sample_seconds: float, outage_hours: float, as_json: bool, **given: str | None) -> None:
    """Estimate what a capture of the tables needs: log files, spool, and time to catch up.

    Reads the counters of sysmaster:sysptprof twice, the sizes of the tables, and the log files.
    Changes nothing, and needs no capture.
    """
    from informix_cdc.commands.size import print_size

    print_size(
        parse_options({**given, "unsupportedColumns": "omit-following"}, is_stream=False),
        sample_seconds=sample_seconds,
        outage_hours=outage_hours,
        as_json=as_json,
    )


@main.command(short_help="Print columns, keys and DDL for lake tables.")
@source_options(*(CONNECTION, _TABLES, _COLUMNS, _LARGE_OBJECTS, _VALUES), also=["snapshotKey"])
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "delta", "iceberg", "postgresql", "from-json", "json"]),
    default="table",
    show_default=True,
    help="table: columns and key of each table. delta, iceberg, postgresql: CREATE TABLE statements."
    " from-json: schemas for from_json with shape=json. json: everything, one object per table.",
)
@click.option(
    "--into",
    default="",
    metavar="CATALOG.SCHEMA",
    help="Prefix for the table names in the statements.",
)
def schema(output_format: str, into: str, **given: str | None) -> None:
    """Print columns, types and key of each table, or DDL for Delta Lake, Iceberg and PostgreSQL.

    Use it for sinks that you write yourself. Changes nothing and needs no Spark. In the DDL for lakes,
    only key columns are NOT NULL, and INTERVAL DAY TO SECOND is a BIGINT of microseconds.
    """
    from informix_cdc.commands.schema import COLUMNS_OF_ANY_SHAPE, print_schema

    options = parse_options({**given, "shape": COLUMNS_OF_ANY_SHAPE}, is_stream=False)
    print_schema(options, output_format, into)


@main.command(short_help="Write the configuration file of a mirror.")
@click.argument("path", metavar="FILE.toml", type=click.Path(dir_okay=False, path_type=Path))
@connection_options(CONNECTION, _TABLES, _COLUMNS)
@click.option(
    "--into",
    default="",
    metavar="PLACE",
    help="Folder or URL of the tables. Default: lake and the database in the current folder.",
)
def init(path: Path, into: str, **given: str | None) -> None:
    """Write FILE.toml, with which a mirror of all tables starts: connection, tables, and keys.

    Asks the server for its tables, and changes nothing there. Tables without a key get settings with
    which they can be mirrored; tables that cannot be mirrored are excluded, with the reason. --table
    chooses others than all; --mask, --columns and so on are written too.
    """
    from informix_cdc.commands.init import write_configuration

    write_configuration(path, {**given, "table": given.get("table") or "*.*"}, into)


@main.command(short_help="Keep lake tables in sync with Informix tables.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--plan", "is_plan", is_flag=True, help="Print the plan and all problems; write nothing.")
@click.option(
    "--columns", "with_columns", is_flag=True, help="With --plan: print the columns of each table too."
)
@click.option("--json", "as_json", is_flag=True, help="With --plan: print one JSON object.")
@click.option(
    "--once", is_flag=True, help="Stop when everything committed before the start is applied."
)
@click.option(
    "--program", is_flag=True, help="Print the path of the program for spark-submit and exit."
)
def mirror(
    file: Path | None, is_plan: bool, with_columns: bool, as_json: bool, once: bool, program: bool
) -> None:
    """Keep lake tables in sync with Informix tables, as configured in FILE (TOML).

    FILE has `into`, `checkpoint` and a table [source] with options of the format; docs/lake.md lists
    all settings. The command starts Spark; Ctrl-C stops it after the current batch. Exit code 1: the
    plan has problems, or the query failed; 3, with --once: a table has stopped, and the others are up
    to date.
    """
    from importlib.util import find_spec

    if program:
        click.echo(Path(__file__).with_name("mirror_program.py"))
        return
    if file is None:
        raise click.UsageError("Missing argument 'FILE'.")
    for module, extra in (("deltalake", "delta"), ("pyspark", "spark")):
        if find_spec(module) is None:
            raise OneLineError(f"mirror requires {module}. Run: pip install 'informix-cdc[{extra}]'")
    from informix_cdc.commands.mirror import failures_in_one_line, print_plan, run_mirror

    if is_plan:
        is_sound = print_plan(file, with_columns=with_columns, as_json=as_json)
        raise SystemExit(0 if is_sound else 1)
    with failures_in_one_line():
        stopped = run_mirror(file, once=once)
    if once and stopped:
        raise SystemExit(TABLES_STOPPED)


@main.command(short_help="Capture changes for any number of queries, also while Spark is down.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--continue",
    "continues",
    default="",
    metavar="CHECKPOINT",
    help="Take over the stream of a stopped query with this checkpoint. Later starts ignore it.",
)
def capture(file: Path, continues: str) -> None:
    """Capture changes into the spool that FILE (TOML) names, for any number of queries.

    FILE has a table [source] with options of the format, spoolPath among them, and may have
    `retention` and `retentionBytes`. Queries read it with options captureAt and reader. The process
    runs until it receives SIGTERM or Ctrl-C; a second one with the same FILE waits as a standby.
    """
    from informix_cdc.commands.capture import run_capture

    run_capture(file, continues)


@main.command(short_help="List the registered readers of a capture, and remove one.")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--remove", metavar="NAME", help="Remove a reader: the capture keeps no rows for it.")
@click.option(
    "--add",
    metavar="NAME",
    help="Print the file with which a reader on another host is admitted (readerFile).",
)
@click.option(
    "--renew",
    metavar="DIRECTORY",
    type=click.Path(path_type=Path),
    help="Write new files of all readers to a new directory, with a new certificate of the capture: no"
    " earlier file is valid any more.",
)
@_AS_JSON
def readers(
    folder: Path, remove: str | None, add: str | None, renew: Path | None, as_json: bool
) -> None:
    """List the readers of the capture in FOLDER, its spoolPath: how far behind, and last seen.

    A reader that no longer exists holds rows back until `retention` has passed: remove it.
    """
    from informix_cdc.commands.readers import (
        add_reader,
        print_readers,
        remove_reader,
        renew_readers,
    )

    if sum(given is not None for given in (add, remove, renew)) > 1:
        raise click.UsageError("--add, --remove and --renew are mutually exclusive.")
    if renew is not None:
        renew_readers(folder, renew)
        return
    if add is not None:
        add_reader(folder, add)
    elif remove is not None:
        remove_reader(folder, remove)
    else:
        print_readers(folder, as_json=as_json)


@main.command(short_help="Compare mirrored tables with Informix.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--tables", default="", help="Names or patterns of owner.table, with commas; default: all."
)
@click.option(
    "--sample",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    help="The fraction of rows to compare.",
)
@click.option("--repair", is_flag=True, help="Write the rows of Informix over those that differ.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Cancel the request after this time; default: wait until all tables are compared.",
)
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a report too: tables, rows, differences and commits, as one page of HTML.",
)
def verify(
    file: Path, tables: str, sample: float, repair: bool, timeout: float | None, page: Path | None
) -> None:
    """Compare the tables of the running mirror in FILE (TOML) with Informix.

    The mirror compares all rows while changes stream, and this command prints one line per difference
    and a summary per table. Exit code 0: all tables are equal; 1: a table differs, also if it was
    repaired; 2: a table could not be verified, or no mirror is running.
    """
    from importlib.util import find_spec

    if find_spec("deltalake") is None:
        raise OneLineError("verify requires deltalake. Run: pip install 'informix-cdc[delta]'")
    from informix_cdc.commands.verify import run_verify

    patterns = tuple(each.strip() for each in tables.split(",") if each.strip())
    code = run_verify(file, patterns, sample=sample, repair=repair, timeout=timeout, page=page)
    raise SystemExit(code)


@main.command(short_help="Make PostgreSQL the primary, in place of Informix.")
@source_options(CONNECTION)
@click.option("--dry-run", is_flag=True, help="Rehearse all steps but the last; change nothing.")
@click.option(
    "--when-idle",
    "idle_seconds",
    type=click.FloatRange(min=0),
    default=0,
    metavar="SECONDS",
    help="Wait until no table has changed for this time; default: writers have been stopped.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Give up if the tables are not compared by then; default: wait.",
)
@click.option("--undo", is_flag=True, help="Go back: only the mirror may write the tables again.")
def cutover(
    dry_run: bool, idle_seconds: float, timeout: float | None, undo: bool, **given: str | None
) -> None:
    """Make the PostgreSQL tables of the running mirror in FILE.toml the primary.

    Checks that no table is stopped or loading and that no transaction is open, compares every row with
    Informix, sets the sequences from Informix's SERIAL counters, and lets other programs write the
    tables. Prints a receipt. Exit code 1: it was not cut over, and nothing was changed.
    """
    from informix_cdc.commands.cutover import file_of_mirror, run_cutover, undo_cutover
    from informix_cdc.terminal import options_without_tables

    file = file_of_mirror((click.get_current_context().default_map or {}).get("mirror"))
    options = options_without_tables(given)
    if undo:
        undo_cutover(file, options)
        return
    code = run_cutover(
        file,
        options,
        is_rehearsal=dry_run,
        idle_seconds=idle_seconds,
        timeout_seconds=timeout,
    )
    raise SystemExit(code)


@main.command(short_help="Read tables of a running query again.")
@source_file_argument(_of_file)
@click.argument("tables", cls=AfterFile, nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--checkpoint", metavar="PLACE", required=True, help="checkpointLocation of the query or mirror."
)
@click.option(
    "--spool",
    default="",
    metavar="PATH",
    help="spoolPath of the query, or of the capture it reads. Default: the folder spool in PLACE.",
)
@click.option(
    "--where",
    default="",
    metavar="CONDITION",
    help="Inclusive limits of the first key column of the only TABLE, such as 'order_num >= 40000',"
    " or 'order_num BETWEEN 1 AND 9'.",
)
@click.option("--window", default="", metavar="HH:MM-HH:MM", help="Time of day in which rows are read.")
@click.option("--no-wait", is_flag=True, help="Do not wait until the rows are in the sink.")
@click.option(
    "--cancel", "is_cancel", is_flag=True, help="Cancel the pending requests for TABLE... instead."
)
@click.option(
    "--timeout", type=click.FloatRange(0), metavar="SECONDS", help="Stop waiting after this time."
)
def resync(
    tables: tuple[str, ...],
    checkpoint: str,
    spool: str,
    where: str,
    window: str,
    no_wait: bool,
    is_cancel: bool,
    timeout: float | None,
) -> None:
    """Read the rows of each TABLE again while its query runs, so that its copy equals the table.

    TABLE is owner.table, or a pattern such as informix.ord*. The query needs tableEvents=true, as a
    mirror sets it. The command stores a request in the query's spool, and never connects to the server.
    It waits until the sink has the rows. Exit code 1: a table could not be read, or --timeout passed;
    3: the mirror has stopped a table, so that nothing was written.
    """
    from informix_cdc.commands import resync as resync_command

    if is_cancel:
        resync_command.cancel(tables, checkpoint, spool)
        return
    code = resync_command.resync(
        tables, checkpoint, spool, where, window, waits=not no_wait, timeout_seconds=timeout
    )
    if code:
        raise SystemExit(code)


@main.command(short_help="Record a server's responses for replay elsewhere.")
@source_options(*(CONNECTION, _TABLES, _COLUMNS, _LARGE_OBJECTS, _VALUES, _LOG_READING))
@click.option(
    "--to",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File to create; the suffix .gz compresses it.",
)
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), help="Stop after this many seconds."
)
@click.option("--reads", type=click.IntRange(1), help="Stop after this number of reads.")
@click.option("--catalog-only", is_flag=True, help="Record only the catalog, and no changes.")
def record(
    path: Path, seconds: float | None, reads: int | None, catalog_only: bool, **given: str | None
) -> None:
    """Record a server's responses, byte by byte, for `informix-cdc emulator --replay`.

    Starts now and stops with Ctrl-C or at a limit. Switches full row logging of the tables on, unless
    --catalog-only is given. The file contains table rows but no password: docs/evidence/README.md.
    """
    from informix_cdc.commands.record import RecordLimits
    from informix_cdc.commands.record import record as record_to

    limits = RecordLimits(seconds, reads)
    options = parse_options(given, is_stream=False)
    record_to(options, path, limits, catalog_only=catalog_only)


@main.command(short_help="Check our assumptions about servers on yours.")
@source_options(CONNECTION, ["database"])
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to create. Default: informix-cdc-proof-<date>.json in the current folder.",
)
def prove(report: Path | None, **given: str | None) -> None:
    """Check on your server what this project assumes about servers, and write a report to send to us.

    --database names a scratch database: prove makes it and drops it, or uses one without tables. It
    refuses any other. In it prove makes tables, changes them by SQL, captures them, compares the result
    with SELECT, and drops them. The report has no data, no names and no secrets: docs/prove.md. Exit
    code 0: nothing deviates; 1: an assumption does not hold; 2: an option is invalid.
    """
    from informix_cdc.commands.prove import print_proofs

    options = parse_options({**given, "table": "informix.systables"}, is_stream=False)
    raise SystemExit(print_proofs(options, report))


@main.command(short_help="Print the path of the jar that reads rows in Spark's JVM.")
@click.option(
    "--compile", "is_new", is_flag=True, help="Compile it first, with javac and PySpark's jars."
)
def jar(is_new: bool) -> None:
    """Print the path of the jar that reads rows in Spark's JVM, for Spark's setting spark.jars.

    With it Spark reads the same rows as columns, which is faster:
    docs/clusters.md#the-reader-in-the-jvm.
    """
    from informix_cdc.host import compile_jar, jar_path

    click.echo(compile_jar() if is_new else jar_path())


main.add_command(db2)
main.add_command(demo)
main.add_command(emulator)


if __name__ == "__main__":
    main()
