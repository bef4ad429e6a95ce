"""Every example runs, and what it prints is right: one by itself, the others in one Spark.

They start Spark, but have no `spark` mark: it keeps tests in the process with the shared session.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from connector.jvm.java_reader import jar, require_javac
from harness.runs.patience import patiently
from manual.made_parts import ROOT
from manual.notebooks import texts_of

EXAMPLES = ROOT / "examples"
NOTEBOOK = EXAMPLES / "notebook.ipynb"
# A short life is not worth the second compiler: without it these processes take half the time.
_ENVIRONMENT = {"SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}

Check = Callable[[str], None]
QUICKSTART = (
    ("      insert", "19.90", " true"),
    (" update_preimage", "19.90", "false"),
    ("update_postimage", "24.90", "false"),
)
_CONTENT = re.compile(r"^(?:\|.*\d.*\||batch .*|night .*)$", re.MULTILINE)
_TIME = re.compile(r"\|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\|$", re.MULTILINE)  # of a commit: never the same


def run(command: list[str], folder: Path, seconds: float, **more: str) -> str:
    environment = {**os.environ, **_ENVIRONMENT, "TMPDIR": str(folder), **more}
    environment.pop("PYSPARK_PYTHON", None)
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=patiently(seconds),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def prints(*content: str) -> Check:
    """Return a check that these are the lines with content, in this order."""

    def check(output: str) -> None:
        assert _CONTENT.findall(output) == list(content)

    return check


def is_debeziums_envelope(output: str) -> None:
    messages = [json.loads(line) for line in output.splitlines()]
    first, second = ({"order_num": 1, "city": "Zürich", "total": total} for total in (19.9, 24.9))
    assert [(each["op"], each["before"], each["after"]) for each in messages] == [
        ("c", None, first),
        ("u", first, second),
        ("d", second, None),
    ]
    assert {each["source"]["table"] for each in messages} == {"orders"}
    assert [each["transaction"]["total_order"] for each in messages] == [1, 3, 4]


def keeps_history_and_present(output: str) -> None:
    lines = output.splitlines()
    # Spark has taken the AUTO CDC flows into the graph; only the run leaves them out.
    assert {line.split(": ")[1] for line in lines if "EXCLUDED" in line} == {
        f"Flow 'spark_catalog.default.orders_scd{kind}' is EXCLUDED." for kind in (1, 2)
    }
    assert "orders [{'order_num': 2, 'city': 'Bern'}]" in lines
    history = next(line for line in lines if line.startswith("history "))
    states = re.findall(r"'order_num': (\d), 'city': '(\w+)'.*?'end': (None|\{)", history)
    ended = [("1", "Basel", "{"), ("1", "Zug", "{"), ("2", "Bern", "{")]  # Zug by the TRUNCATE
    assert sorted(states) == sorted([*ended, ("2", "Bern", "None")])


def has_rows_there_and_changes(output: str) -> None:
    prints(
        "|        1|Basel|          insert|     true|",
        "|        2| Bern|          insert|     true|",
        "|        1|Basel| update_preimage|    false|",
        "|        1|  Zug|update_postimage|    false|",
        "|        2| Bern|          delete|    false|",
        "|        2| Bern|          insert|    false|",
    )(output)
    assert output.splitlines()[-1] == "present: {2: 'Bern'}"


CHECKS: dict[str, Check] = {
    "auto_cdc": keeps_history_and_present,
    "bronze_table": has_rows_there_and_changes,
    "db2_q_messages": prints(
        "| Doe|1200.50|          insert|",
        "| Doe|1200.50| update_preimage|",
        "| Doe|1300.00|update_postimage|",
        "| Doe|1300.00|          delete|",
    ),
    "debezium_envelope": is_debeziums_envelope,
    "exactly_once_sink": prints("|    1|        1|", "|    2|        2|"),
    "many_tables": prints(
        'batch 1: stores:informix.orders insert None {"order_num":1,"city":"Bern"} None',
        'batch 1: stores:informix.items insert None {"order_num":1,"item_num":1,"price":9.90} 9.90',
        "batch 1: stores:informix.orders update"
        ' {"order_num":1,"city":"Bern"} {"order_num":1,"city":"Basel"} None',
    ),
    "mirror": prints(
        "|        1|Basel|",
        "|        1| Zug|",
        "|        2|Bern|",
        "|        2|   1|12.50|     NULL|",
    ),
    "nightly_batch": prints(
        "night 0: 0 changes",
        "night 1: 3 changes",
        "night 2: 0 changes",
        "night 3: 1 changes",
        *(f"|        {number}|" for number in (1, 2, 3, 4)),
    ),
    "quickstart": prints(
        *(
            f"|{change}|        1|Zürich|{total}|    {was_there}|"
            for change, total, was_there in QUICKSTART
        ),
    ),
    "several_tables": prints(
        "batch 0, orders: []",
        "batch 0, items: []",
        "batch 0, transactions: 0",
        "batch 1, orders: [(1, 'Zürich'), (2, 'Bern')]",
        "batch 1, items: [(1, 1, Decimal('9.90')), (1, 2, Decimal('9.90')),"
        " (2, 1, Decimal('9.90')), (2, 2, Decimal('9.90'))]",
        "batch 1, transactions: 2",
    ),
    "upsert": prints("|        2|Bern|"),
    "windowed_totals": prints("|2026-01-05 12:00:00| 12.50|", "|2026-01-05 12:05:00|-12.50|"),
}


ALONE = "auto_cdc"  # it is Spark Connect
CONSOLE = "quickstart"  # has Spark write to its own output; begins, so its Spark is fresh
TOGETHER = sorted(set(CHECKS) - {ALONE}, key=lambda name: (name != CONSOLE, name))


@pytest.fixture(scope="session")
def printed_together(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    paths = [*(str(EXAMPLES / f"{name}.py") for name in TOGETHER), str(NOTEBOOK)]
    command = [str(Path(__file__).with_name("examples_in_one_spark.py")), *paths]
    # Examples set it before they start Spark; this Spark was started by another one.
    password = {"INFORMIX_CDC_PASSWORD": "in4mix"}
    folder = tmp_path_factory.mktemp("examples")
    *written, printed = run(command, folder, seconds=300, **password).splitlines()
    return {**json.loads(printed), CONSOLE: "\n".join(written)}


@pytest.mark.slow
@pytest.mark.parametrize("name", TOGETHER)
def test_an_example_prints_what_it_is_about(name: str, printed_together: dict[str, str]) -> None:
    CHECKS[name](_TIME.sub("|", printed_together[name]))


@pytest.mark.slow
def test_an_example_prints_in_the_notebook_what_it_was_saved_with(
    printed_together: dict[str, str],
) -> None:
    """If it rightly prints something else now: python -m manual.notebooks examples/notebook.ipynb"""
    saved = texts_of(json.loads(NOTEBOOK.read_text(encoding="utf-8")))
    assert json.loads(printed_together["notebook"]) == saved
    assert "|update_postimage|        2|Basel|24.90|    false|" in "".join(saved)


@pytest.mark.slow
@pytest.mark.only_in_all
def test_an_example_in_real_time_mode_keeps_another_database_equal(tmp_path: Path) -> None:
    """With the jar of the tests, which need not be in the installation."""
    require_javac()
    given = (
        f"import runpy, informix_cdc.host as host; host.jar_path = lambda: {str(jar())!r};"
        f" runpy.run_path({str(EXAMPLES / 'real_time_foreach.py')!r}, run_name='__main__')"
    )
    printed = run(["-c", given], tmp_path, seconds=120)
    assert re.search(r"^100 orders, one deleted; half were there within \d+ ms$", printed, re.MULTILINE)


@pytest.mark.slow
def test_an_example_of_spark_connect_prints_what_it_is_about(tmp_path: Path) -> None:
    CHECKS[ALONE](run([str(EXAMPLES / f"{ALONE}.py")], tmp_path, seconds=120))


def test_every_example_is_run_and_listed() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    elsewhere = {"auto_cdc_flows", "delta_merge", "first_mirror", "first_stream"}
    real_time = {"real_time_foreach", "real_time_to_kafka"}  # the latter by hand: it needs a broker
    # run by another one, `make matrix`, test_first_page.py
    assert names == {*CHECKS, *elsewhere, *real_time}
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}.py)" in listed for name in names)
    assert f"({NOTEBOOK.name})" in listed


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_shorter_than_seventy_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 70
