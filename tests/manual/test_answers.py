"""Questions that people bring to the manual, and the page on which each is answered."""

from __future__ import annotations

import re

import pytest

from manual.made_parts import ROOT

# who asks, page, headings that answer, words that an answer cannot do without
ANSWERS = [
    (
        "where may the password be on my platform",
        "docs/security.md",
        ("Spark Connect", "Kubernetes", "Vault", "Databricks", "TLS", "Trusted connections"),
        ("conssl.cfg", "onsocssl", "REMOTE_SERVER_CFG"),
    ),
    (
        "what does it do to my server",
        "docs/dba.md",
        ("What changes on the server", "Rights", "Load", "How to see it", "How to undo it"),
        ("GRANT CONNECT TO", "slow reader", "LOGFILES", "Backups do not keep", "ALTER TABLE"),
    ),
    (
        "what else does my DBA ask",
        "docs/dba.md",
        (
            *("An initial snapshot", "Growth of the log", "Log retention and the capture process"),
            *("Altering captured tables, and vendors' upgrades", "Replication and high availability"),
            *("Planned switch of a pair", "Editions and upgrades"),
        ),
        (
            *("onmode -d make primary", "IN SHARE MODE", "DYNAMIC_LOGS", "Enterprise Replication"),
            *("SD secondaries", "Connection Manager", "alter --begin", "informix-cdc capture"),
        ),
    ),
    (
        "what does it send to my server",
        "docs/statements.md",
        (),
        ("cdc_opensess", "SQ_LODATA"),
    ),
    (
        "how much log, disk, memory and time does it need",
        "docs/sizing.md",
        ("Log", "Spool", "Time", "Memory and cores", "A query that does not keep up"),
        ("informix-cdc size", "maxTransactionMemoryBytes"),
    ),
    (
        "what do I do after a data loss",
        "docs/operations/data-loss.md",
        ("Decide after IFXCDC-0006", "Read a table again", "Start a new stream", "A sink of your own"),
        ("informix-cdc resync", "onDataLoss=resync", "deleted"),
    ),
    (
        "does it run on my platform",
        "docs/versions.md",
        ("Tried", "Spark 4.0 and 4.1", "Platforms"),
        ("Delta Lake", "Iceberg", "Databricks", "Amazon EMR", "AWS Glue"),
    ),
    (
        "how do I keep log lines whole, and which alarms are there",
        "docs/operations/monitoring.md",
        ("Log lines", "Metrics", "Alarms"),
        ("spark.ui.showConsoleProgress=false",),
    ),
    (
        "how do I restart, move or restore a query",
        "docs/operations/restart.md",
        ("Restart a query", "Move a query", "Fail-over of the server", "Change the password"),
        ("IFXCDC-0001", "with the same checkpoint"),
    ),
    (
        "how do I go back to an earlier version",
        "docs/operations/restart.md",
        ("Upgrade the connector", "Downgrade the connector", "Upgrade the server"),
        ("startingPosition", "syscdcv1.sql"),
    ),
    (
        "why not the other one",
        "docs/comparison.md",
        ("Compared with the Lakeflow community connector",),
        ("Choose it for", "Choose this one for"),
    ),
]


@pytest.mark.parametrize(
    ("page", "headings", "words"), [each[1:] for each in ANSWERS], ids=[each[0] for each in ANSWERS]
)
def test_a_question_is_answered_where_people_look(
    page: str, headings: tuple[str, ...], words: tuple[str, ...]
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert set(headings) <= set(re.findall(r"^##+ (.+)$", text, re.MULTILINE))
    plain = " ".join(text.split())
    assert [word for word in words if word not in plain] == []


def test_no_example_gives_the_password_as_an_option() -> None:
    """Plans and logs may show it; an example is copied."""
    shown = [*(ROOT / "examples").iterdir(), ROOT / "README.md", ROOT / "docker/client/stream.py"]
    gives = re.compile(r"""\bpassword\s*=|["']password["']""")
    assert [path.name for path in shown if path.is_file() and gives.search(path.read_text())] == []
