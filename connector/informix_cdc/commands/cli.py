"""The command line: `informix-cdc`.

Rule: quick to start. A command imports what it needs when it runs; Spark is loaded by the demo only.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from click.core import ParameterSource

from informix_cdc.commands.db2 import db2
from informix_cdc.commands.playground import demo, emulator
from informix_cdc.options import CONNECTION, SourceOptions
from informix_cdc.terminal import (
    PASSWORD_HINT,
    Commands,
    OneLineError,
    one_line_errors,
    parse_options,
    source_options,
)
from informix_cdc.version import __version__

_TABLES = ("database", "table", "tableExclude")
_COLUMNS = ("columns", "unsupportedColumns", "lobs", "simpleLobs")
_LARGE_OBJECTS = ("lobMaxBytes", "lobConnections", "lobReadSeconds", "lobUnchanged")
_VALUES = ("floatingDecimal", "intervals", "trailingBlanks", "badCharacters")
_LOG_READING = ("readTimeoutSeconds", "maxTransactionMemoryBytes")
_SNAPSHOTS = (
    *("initialSnapshot", "snapshotKey", "snapshotWithoutKey"),
    *("snapshotMarker", "heartbeatTable"),
)
_DRIVER_HOST = (
    *("spoolPath", "maxSpoolBytes", "delivery"),
    *("flightHost", "flightPort", "metricsHost", "metricsPort"),
)
# Whose row logging is switched: the tables themselves are arguments.
_ALTERED_TABLES = ("database", "tableExclude", "columns", "lobs", "simpleLobs")


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="informix-cdc")
def main() -> None:
    """Live change data capture from IBM Informix into Spark.

    New here? `informix-cdc demo` shows everything at work, and needs no Informix.
    """


@main.command(epilog=PASSWORD_HINT, short_help="Print committed changes as they happen, without Spark.")
@source_options(
    *(CONNECTION, _TABLES, _COLUMNS, _LARGE_OBJECTS, _VALUES, _LOG_READING),
    also=["snapshotKey", "snapshotWithoutKey", "snapshotChunkRows", "restartBound"],
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="table: for people. json: one object per line, nothing lost: decimals, and integers beyond"
    " 2^53, are strings.",
)
@click.option("--limit", type=click.IntRange(1), help="Number of rows after which to end.")
@click.option(
    "--from",
    "startingPosition",
    metavar="PLACE",
    default="latest",
    show_default=True,
    help="Where to begin, as option startingPosition: latest (now), earliest (the oldest log file), or"
    " a position such as 40:0x18; status, offsets and acquire print such ones.",
)
@click.option(
    "--no-switch",
    is_flag=True,
    help="Refuse a table whose full row logging is off, and change nothing on the server.",
)
@click.option(
    "--yes", "is_sure", is_flag=True, help="Switch full row logging on without asking for confirmation."
)
@click.option("--snapshot", is_flag=True, help="Print existing rows too, while changes go on.")
def tail(
    output_format: str,
    limit: int | None,
    no_switch: bool,
    is_sure: bool,
    snapshot: bool,
    **given: str | None,
) -> None:
    """Print committed changes as they happen, without Spark.

    Begins now, unless --from says otherwise, or with the rows that are there (--snapshot), and ends
    with Ctrl-C. Every capture needs full row logging of its tables. Where it is off, tail asks before
    it switches it on: the server then refuses ALTER TABLE until `informix-cdc release` switches it off.
    """
    from informix_cdc.commands.tail import permission, print_changes, with_spool

    if no_switch and is_sure:
        raise click.UsageError("--yes and --no-switch exclude each other.")
    may_switch = permission(may_switch=not no_switch, is_sure=is_sure)
    with one_line_errors(), with_spool(given, snapshot=snapshot) as texts:
        print_changes(parse_options(texts), output_format, limit, may_switch)


@main.command(epilog=PASSWORD_HINT, short_help="Check all that a stream needs, and name the remedies.")
@source_options(
    *(CONNECTION, _TABLES, _COLUMNS, _LARGE_OBJECTS, _SNAPSHOTS, _DRIVER_HOST), also=["restartBound"]
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def doctor(as_json: bool, **given: str | None) -> None:
    """Check driver, server, tables and this host, and name the remedy for what is wrong.

    Changes nothing. Run it where Spark's driver is to run: it looks at Spark, Java, the workers'
    Python, the spool's folder and the ports too. Each check ends as ok, warning, failure, or not
    checked because an earlier one failed. Exit code 0: no failure; 1: at least one; 2: an option is
    wrong.
    """
    from informix_cdc.commands.doctor import print_findings

    with one_line_errors():
        raise SystemExit(print_findings(parse_options(given), as_json=as_json))


@main.command(
    epilog=PASSWORD_HINT, short_help="Switch full row logging off, so that tables can be altered."
)
@source_options(CONNECTION, _ALTERED_TABLES, _LARGE_OBJECTS, _LOG_READING, also=["restartBound"])
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--checkpoint",
    "checkpoints",
    multiple=True,
    metavar="PLACE",
    help="checkpointLocation of a query that captures a TABLE; repeatable.",
)
@click.option(
    "--no-checkpoint", is_flag=True, help="State that no query needs changes of these tables any more."
)
@click.option(
    "--stream-tables",
    multiple=True,
    metavar="TEXT",
    help="Option table of these queries, if it names other tables than TABLE...; repeatable.",
)
@click.option(
    "--receipt",
    type=click.Path(path_type=Path, dir_okay=False),
    help="New file for what the streams of the tables need to go on with the same checkpoints.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; refusals are not overridden.")
@click.option(
    "--quiet-seconds",
    type=click.FloatRange(0, 3600),
    default=60,
    show_default=True,
    help="Seconds without new records after which the log counts as read to its end.",
)
def release(
    tables: tuple[str, ...],
    checkpoints: tuple[str, ...],
    no_checkpoint: bool,
    stream_tables: tuple[str, ...],
    receipt: Path | None,
    yes: bool,
    quiet_seconds: float,
    **given: str | None,
) -> None:
    """Switch full row logging of each TABLE (owner.table) off, so that it can be altered.

    Refuses while a session captures a TABLE, and while a query has changes of it to deliver: the log is
    read from each checkpoint's position to its end. Stop the writers and the queries first.
    """
    from informix_cdc.commands import release as release_command

    with one_line_errors():
        release_command.release(
            _options_of(tables, given),
            checkpoints,
            stream_tables,
            needs_no_checkpoint=no_checkpoint,
            is_sure=yes,
            quiet_seconds=quiet_seconds,
            receipt=receipt,
        )


@main.command(epilog=PASSWORD_HINT, short_help="Switch full row logging on again, after an ALTER.")
@source_options(CONNECTION, _ALTERED_TABLES, _LARGE_OBJECTS, also=["restartBound"])
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option(
    "--receipt",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Receipt that release has written: the streams of the tables go on with it.",
)
def acquire(tables: tuple[str, ...], receipt: Path | None, **given: str | None) -> None:
    """Switch full row logging of each TABLE on again; print the position from which that holds.

    The position is what a new stream, with a new checkpoint, takes as startingPosition. Row logging
    that someone else has switched off and on again leaves no trace: what changed meanwhile is missing.
    """
    from informix_cdc.commands import acquire as acquire_command

    with one_line_errors():
        acquire_command.acquire(_options_of(tables, given), receipt)


def _options_of(tables: tuple[str, ...], given: dict[str, str | None]) -> SourceOptions:
    # A table may have columns that cannot be captured: its row logging is switched all the same.
    of_switches = {"table": ",".join(tables), "unsupportedColumns": "omit-following"}
    return parse_options({**given, **of_switches}, is_stream=False)


@main.command(
    epilog=PASSWORD_HINT, short_help="Show capture sessions, the log, and the lag of checkpoints."
)
@source_options(CONNECTION, _LARGE_OBJECTS, also=["tableExclude", "restartBound"])
@click.option(
    "--checkpoint",
    "checkpoints",
    multiple=True,
    metavar="PLACE",
    help="checkpointLocation of a query whose lag and headroom are shown; repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option(
    "--watch",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    help="Seconds between two requests; repeats until Ctrl-C.",
)
def status(
    checkpoints: tuple[str, ...], as_json: bool, watch: float | None, **given: str | None
) -> None:
    """Show the capture sessions of a server, its log, and the lag and headroom of checkpoints.

    Lag is the log between a checkpoint and the log's end; headroom is what the server can still write
    before it overwrites the restart position. Both count the whole log, in bytes of all tables; percent
    is of all log files.
    """
    from informix_cdc.commands.status import print_status
    from informix_cdc.terminal import options_without_tables

    with one_line_errors():
        options = options_without_tables(given)
        print_status(options, checkpoints, as_json=as_json, watch_seconds=watch)


@main.command(epilog=PASSWORD_HINT, short_help="Print columns, keys and DDL for tables of a lake.")
@source_options(
    *(CONNECTION, _TABLES, _COLUMNS, _LARGE_OBJECTS, _VALUES), also=["snapshotKey", "restartBound"]
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "delta", "iceberg", "from-json", "json"]),
    default="table",
    show_default=True,
    help="table: columns and key of each table. delta, iceberg: statements that create the tables."
    " from-json: schemas for from_json with shape=json. json: all of it, an object for each table.",
)
@click.option(
    "--into",
    default="",
    metavar="CATALOG.SCHEMA",
    help="Put this in front of each table's name in the statements.",
)
def schema(output_format: str, into: str, **given: str | None) -> None:
    """Print the columns, Spark types and key of each table, or DDL for Delta Lake and Iceberg.

    For sinks that you write yourself. Changes nothing, and needs no Spark. Key columns are NOT NULL in
    the DDL, all others may be NULL. INTERVAL DAY TO SECOND is a BIGINT of microseconds there.
    """
    from informix_cdc.commands.schema import COLUMNS_OF_ANY_SHAPE, print_schema

    with one_line_errors():
        options = parse_options({**given, "shape": COLUMNS_OF_ANY_SHAPE}, is_stream=False)
        print_schema(options, output_format, into)


@main.command(short_help="Keep tables of a lake equal to Informix tables.")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--plan", "is_plan", is_flag=True, help="Print what would be done, and every problem.")
@click.option("--once", is_flag=True, help="End once everything that is committed now is there.")
@click.option("--program", is_flag=True, help="Print the path of a program for spark-submit, and end.")
def mirror(file: Path | None, is_plan: bool, once: bool, program: bool) -> None:
    """Keep tables of a lake equal to Informix tables, as FILE says (TOML).

    FILE has `into`, `checkpoint` and a table [source] with options of the format; docs/lake.md shows
    all settings. Starts Spark by itself; Ctrl-C ends it after the batch at hand. Exit code 1: the plan
    has problems, or the query has failed.
    """
    from importlib.util import find_spec

    if program:
        click.echo(Path(__file__).with_name("mirror_program.py"))
        return
    if file is None:
        raise click.UsageError("Missing argument 'FILE'.")
    for module, extra in (("deltalake", "delta"), ("pyspark", "spark")):
        if find_spec(module) is None:
            raise OneLineError(f"a mirror needs {module}: pip install 'informix-cdc[{extra}]'.")
    from informix_cdc.commands.mirror import failures_in_one_line, print_plan, run_mirror

    with one_line_errors():
        if is_plan:
            raise SystemExit(0 if print_plan(file) else 1)
        with failures_in_one_line():
            run_mirror(file, once=once)


@main.command(epilog=PASSWORD_HINT, short_help="Show where a query's checkpoint stands in the log.")
@click.argument("checkpoint")
@source_options(CONNECTION, _LARGE_OBJECTS, also=["tableExclude", "restartBound"])
@click.option(
    "--spool-path",
    default="",
    metavar="FOLDER",
    help="Option spoolPath of the query, to show what its spool holds.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.pass_context
def offsets(
    context: click.Context, /, checkpoint: str, spool_path: str, as_json: bool, **given: str | None
) -> None:
    """Show the offsets in a query's CHECKPOINT, and what a restart needs.

    CHECKPOINT is the query's checkpointLocation: a local path, or a URL such as s3://bucket/path.
    Positions are shown as the server writes them: number of the logical log, and place in it. No server
    is asked, unless flags or --profile name one: then the headroom is shown too.
    """
    from informix_cdc.commands.offsets import print_offsets
    from informix_cdc.terminal import options_without_tables

    with one_line_errors():
        options = options_without_tables(given) if _is_server_named(context, given) else None
        print_offsets(checkpoint, spool_path, options, as_json=as_json)


def _is_server_named(context: click.Context, given: Iterable[str]) -> bool:
    """Tell whether a server was typed: variables that are always set must not connect unasked."""
    sources = (context.get_parameter_source(name) for name in (*given, "profile"))
    return ParameterSource.COMMANDLINE in sources


@main.command(epilog=PASSWORD_HINT, short_help="Record a server's answers, to replay them elsewhere.")
@source_options(
    *(CONNECTION, _TABLES, _COLUMNS, _LARGE_OBJECTS, _VALUES, _LOG_READING), also=["restartBound"]
)
@click.option(
    "--to",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File to create; with the suffix .gz it is compressed.",
)
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="Seconds after which to end.")
@click.option("--reads", type=click.IntRange(1), help="Number of reads after which to end.")
@click.option("--catalog-only", is_flag=True, help="Record the catalog's answers only, and no changes.")
def record(
    path: Path, seconds: float | None, reads: int | None, catalog_only: bool, **given: str | None
) -> None:
    """Record a server's answers, byte by byte, for `informix-cdc emulator --replay`.

    Begins now, ends with Ctrl-C or at a limit. Switches full row logging on for the tables, except with
    --catalog-only. The file holds the rows themselves, and no password: docs/evidence/README.md.
    """
    from informix_cdc.commands.record import RecordLimits
    from informix_cdc.commands.record import record as record_to

    with one_line_errors():
        limits = RecordLimits(seconds, reads)
        options = parse_options(given, is_stream=False)
        record_to(options, path, limits, catalog_only=catalog_only)


@main.command(short_help="Print where the jar lies that reads rows in Spark's JVM.")
@click.option("--compile", "is_new", is_flag=True, help="Make it first, with javac and PySpark's jars.")
def jar(is_new: bool) -> None:
    """Print the path of the jar that reads rows in Spark's JVM, for Spark's setting spark.jars.

    Rows then reach Spark in columns, faster, and are the same:
    docs/clusters.md#the-reader-in-the-jvm.
    """
    from informix_cdc.host import compile_jar, jar_path

    with one_line_errors():
        click.echo(compile_jar() if is_new else jar_path())


main.add_command(db2)
main.add_command(demo)
main.add_command(emulator)


if __name__ == "__main__":
    main()
