"""The command line: `informix-cdc`.

Rule: quick to start. A command imports what it needs when it runs; Spark is loaded by the demo only.
"""

from __future__ import annotations

import click

from informix_cdc import __version__
from informix_cdc.connector.cli_options import (
    PASSWORD_HINT,
    connection_options,
    one_line_errors,
    parse_options,
)

# What a table's rows become means nothing to a command that reads none.
_OF_ROWS = (
    "columns",
    "unsupportedColumns",
    "lobs",
    "floatingDecimal",
    "intervals",
    "trailingBlanks",
    "badCharacters",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="informix-cdc")
def main() -> None:
    """Live change data capture from IBM Informix into Spark.

    New here? `informix-cdc demo` shows everything at work, and needs no Informix.
    """


@main.command()
@click.option("--seconds", type=click.FloatRange(1), default=30, show_default=True, help="How long.")
@click.option(
    "--transactions-per-second",
    type=click.FloatRange(0.1, 2000),
    default=40,
    show_default=True,
    help="How busy the shop is.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same transactions.")
def demo(seconds: float, transactions_per_second: float, seed: int) -> None:
    """Stream a busy shop from an embedded Informix emulator through Spark, and check every row.

    Needs Java 17 or later, and nothing else. Ctrl-C ends it early, with the summary.
    """
    from informix_cdc.connector.demo import DemoSettings, run

    with one_line_errors():
        raise SystemExit(run(DemoSettings(seconds, transactions_per_second, seed)))


@main.command()
@connection_options("maxRecordsPerRead", "readBufferBytes")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="table: for people. json: one object per line, nothing lost: decimals, and integers beyond"
    " 2^53, are strings.",
)
@click.option("--limit", type=click.IntRange(1), help="End after so many rows.")
def tail(output_format: str, limit: int | None, **given: str | None) -> None:
    """Print committed changes as they happen, without Spark.

    Begins now, ends with Ctrl-C. Switches full row logging on for the tables, as every capture must;
    `informix-cdc release-logging` switches it off again.
    """
    from informix_cdc.connector.tail_command import print_changes

    with one_line_errors():
        print_changes(parse_options(given), output_format, limit)


tail.epilog = PASSWORD_HINT


@main.command("release-logging", epilog=PASSWORD_HINT)
@connection_options(*_OF_ROWS, "table", "readTimeoutSeconds", "maxRecordsPerRead", "readBufferBytes")
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option("--yes", is_flag=True, help="Do not ask.")
def release_logging(tables: tuple[str, ...], yes: bool, **given: str | None) -> None:
    """Switch full row logging of each TABLE (owner.table) off, so that it can be altered.

    Captures of these tables lose what changes from then on, and stop with an error.
    """
    from informix_cdc.connector.release_command import release

    with one_line_errors():
        # A table may have columns that nobody can capture: its row logging is released all the same.
        chosen = {"table": ",".join(tables), "unsupportedColumns": "omit"}
        release(parse_options({**given, **chosen}), is_sure=yes)


@main.command()
@click.argument("checkpoint")
@click.option("--spool-path", default="", metavar="FOLDER", help="The query's option spoolPath.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for machines.")
def offsets(checkpoint: str, spool_path: str, as_json: bool) -> None:
    """Show where a query's CHECKPOINT stands, and what a restart needs; asks no server.

    CHECKPOINT is the query's checkpointLocation: a local path, or a URL such as s3://bucket/path.
    Positions are shown as the server writes them: number of the logical log, and place in it.
    """
    from informix_cdc.connector.offsets_command import print_offsets

    with one_line_errors():
        print_offsets(checkpoint, spool_path, as_json=as_json)


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9088,
    show_default=True,
    help="Port to listen on; 0: any free one.",
)
@click.option("--server-name", default="informix", show_default=True, help="DBSERVERNAME.")
@click.option(
    "--latency-ms",
    type=click.FloatRange(0, 60_000),
    default=0,
    show_default=True,
    help="Round trip: an answer leaves this long after its request has come, or when it is ready.",
)
@click.option(
    "--wait-to-fill", is_flag=True, help="Reads wait until there are as many records as asked."
)
@click.option(
    "--dialect",
    type=click.Choice(["informix", "gbase8s"]),
    default="informix",
    show_default=True,
    help="Which product to pose as.",
)
@click.option(
    "--demo-workload",
    type=click.FloatRange(0.1, 2000),
    metavar="TRANSACTIONS_PER_SECOND",
    help="Let a shop change customers, orders and items.",
)
def emulator(
    host: str,
    port: int,
    server_name: str,
    latency_ms: float,
    wait_to_fill: bool,
    dialect: str,
    demo_workload: float | None,
) -> None:
    """Serve an emulated Informix server with a demo database, until Ctrl-C.

    It is no Informix: it speaks a protocol of its own, which option transport=emulator understands.
    Its database `stores` has the tables informix.customers, informix.orders and informix.items.
    """
    from informix_cdc.connector.demo_database import demo_server
    from informix_cdc.connector.emulator_command import serve_demo

    server = demo_server(server_name, latency_ms / 1000, wait_to_fill, dialect)
    with one_line_errors():
        serve_demo(server, host, port, demo_workload, dialect)


if __name__ == "__main__":
    main()
