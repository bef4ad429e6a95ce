"""`informix-cdc schema`: columns, types, keys and definitions of target tables."""

from __future__ import annotations

import json

import pytest

from connector.commands.commands import refusal, run
from harness.capture.driving import Served
from informix_emulator import EmulatedServer

EVERY_FORM = """
    id bigserial primary key, "Net Price" decimal(10,2), small smallint,
    took interval hour(2) to second, at datetime year to second, note lvarchar(100), picture blob
"""

TABLE = """\
informix.every
  key: id
  column     Informix                    NULL  Spark                   Delta          Iceberg
  id         BIGSERIAL                   no    BIGINT                  BIGINT         BIGINT
  Net Price  DECIMAL(10,2)               yes   DECIMAL(10,2)           DECIMAL(10,2)  DECIMAL(10,2)
  small      SMALLINT                    yes   SMALLINT                SMALLINT       INT
  took       INTERVAL HOUR(2) TO SECOND  yes   INTERVAL DAY TO SECOND  BIGINT         BIGINT
  at         DATETIME YEAR TO SECOND     yes   TIMESTAMP_NTZ           TIMESTAMP_NTZ  TIMESTAMP_NTZ
  note       LVARCHAR(100)               yes   STRING                  STRING         STRING
  picture    BLOB                        yes   BINARY                  BINARY         BINARY

informix.keyless
  key: none: it has no primary key and no unique index
  column  Informix  NULL  Spark  Delta  Iceberg
  n       INTEGER   yes   INT    INT    INT
"""

DELTA = """\
CREATE TABLE lake.shop.`every` (
  `id` BIGINT NOT NULL,
  `Net Price` DECIMAL(10,2),
  `small` SMALLINT,
  `took` BIGINT,
  `at` TIMESTAMP_NTZ,
  `note` STRING,
  `picture` BINARY
) USING delta
TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
"""

ICEBERG = """\
CREATE TABLE lake.shop.`every` (
  `id` BIGINT NOT NULL,
  `Net Price` DECIMAL(10,2),
  `small` INT,
  `took` BIGINT,
  `at` TIMESTAMP_NTZ,
  `note` STRING,
  `picture` BINARY
) USING iceberg;

ALTER TABLE lake.shop.`every` SET IDENTIFIER FIELDS `id`;
"""

FROM_JSON = """\
-- `every`
`id` BIGINT, `Net Price` DECIMAL(10,2), `small` SMALLINT, `took` INTERVAL DAY TO SECOND, \
`at` TIMESTAMP_NTZ, `note` STRING, `picture` BINARY
"""


@pytest.fixture
def shop(served: Served) -> Served:
    server, _ = served
    server.create_table("stores:informix.every", EVERY_FORM)
    server.create_table("stores:informix.keyless", "n integer")
    return served


def test_columns_types_and_keys_are_listed(shop: Served) -> None:
    result = run(shop[1], "schema", "--table=informix.every,informix.keyless")
    assert result.output == TABLE


@pytest.mark.parametrize(
    ("output_format", "into", "wanted"),
    [("delta", "lake.shop", DELTA), ("iceberg", "lake.shop", ICEBERG), ("from-json", "", FROM_JSON)],
)
def test_a_definition_can_be_pasted(shop: Served, output_format: str, into: str, wanted: str) -> None:
    arguments = ["--table=informix.every", f"--format={output_format}", f"--into={into}"]
    assert run(shop[1], "schema", *arguments).stdout == wanted


def test_json_has_all_of_it(shop: Served) -> None:
    result = run(shop[1], "schema", "--table=informix.every", "--format=json", "--into=lake.shop")
    (table,) = json.loads(result.stdout)
    assert (table["table"], table["target"], table["key"]) == ("informix.every", "every", ["id"])
    assert table["columns"][3] == {
        "name": "took",
        "informix": "INTERVAL HOUR(2) TO SECOND",
        "nullable": True,
        "spark": "INTERVAL DAY TO SECOND",
        "delta": "BIGINT",
        "iceberg": "BIGINT",
    }
    assert "\n\n".join([*table["definitions"]["iceberg"], ""]) == ICEBERG + "\n"


def test_options_of_the_stream_choose_columns_and_types(shop: Served) -> None:
    result = run(
        shop[1],
        "schema",
        "--table=informix.every",
        "--format=delta",
        '--columns=every.id,every."Net Price",every.took,every.picture',
        "--intervals=string",
        "--lobs=content",
    )
    assert column_lines(result.stdout) == [
        "`id` BIGINT NOT NULL",
        "`Net Price` DECIMAL(10,2)",
        "`took` STRING",
        "`picture` STRUCT<content: BINARY, size: BIGINT, status: STRING>",
    ]


def column_lines(text: str) -> list[str]:
    """Return the lines of columns."""
    return [line.strip().rstrip(",") for line in text.splitlines() if line.startswith("  ")]


def test_a_key_that_is_named_goes_before_the_primary_one(shop: Served) -> None:
    server, listening = shop
    server.create_table("stores:informix.coded", "id serial primary key, code integer not null")
    named = ["--table=informix.coded", "--format=iceberg", "--snapshot-key=informix.coded(code)"]
    assert run(listening, "schema", *named).stdout.splitlines() == [
        "CREATE TABLE `coded` (",
        "  `id` INT,",
        "  `code` INT NOT NULL",
        ") USING iceberg;",
        "",
        "ALTER TABLE `coded` SET IDENTIFIER FIELDS `code`;",
    ]


def test_a_name_that_two_owners_use_has_its_owner_in_front(shop: Served) -> None:
    server, listening = shop
    server.create_table("stores:ann.keyless", "n integer")
    tables = "--table=informix.keyless,ann.keyless,informix.every"
    result = run(listening, "schema", tables, "--format=json")
    assert [table["target"] for table in json.loads(result.stdout)] == [
        "informix_keyless",
        "ann_keyless",
        "every",
    ]


def test_tables_that_would_have_one_target_are_refused(shop: Served) -> None:
    server, listening = shop
    server.create_table('stores:informix."Keyless"', "n integer")
    line = refusal(run(listening, "schema", '--table=informix.keyless,informix."Keyless"'), exit_code=2)
    assert 'informix.keyless and informix."Keyless" would both have the target informix_Keyless' in line


def test_columns_that_differ_by_case_only_are_refused(shop: Served) -> None:
    server, listening = shop
    server.create_table("stores:informix.cased", 'a integer, "A" integer')
    line = refusal(run(listening, "schema", "--table=informix.cased"))
    assert 'columns a and "A", which are the same name in Spark' in line


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "a\nb", "a\u2028b"])
def test_a_name_with_control_characters_reaches_no_statement(shop: Served, name: str) -> None:
    server, listening = shop
    declare(server, name)
    line = refusal(run(listening, "schema", "--table=informix.named", "--format=delta"))
    assert "control characters" in line
    assert name not in run(listening, "schema", "--table=informix.named").stdout


def test_blanks_of_other_scripts_are_no_control_characters(shop: Served) -> None:
    declare(shop[0], "\u540d\u3000\u524d")
    result = run(shop[1], "schema", "--table=informix.named", "--format=delta")
    assert "`\u540d\u3000\u524d` INT" in result.stdout


def declare(server: EmulatedServer, name: str) -> None:
    server.create_table("stores:informix.named", f'id integer, "{name}" integer')
