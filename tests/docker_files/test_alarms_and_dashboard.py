"""When each alarm fires, and whether alarms and dashboard ask for what exists.

Conditions are evaluated here, for the few forms of PromQL that they use. Each metric has one series:
one constant value, or one value a minute, the last of them now.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from operator import add, eq, gt, lt, mul, truediv
from statistics import linear_regression
from typing import Any

import promql_parser
import pytest

from docker_files.docker_folder import DOCKER, ROOT, settings
from informix_cdc.monitoring.figures import ABOUT, FIGURES
from informix_cdc.monitoring.prometheus import OF_MIRRORS, OF_READERS

Figures = Mapping[str, float | Sequence[float]]


def value_of(tree: Any, figures: Figures) -> float | None:
    """Return the result of an expression now; None where Prometheus returns nothing."""
    match tree:
        case promql_parser.NumberLiteral():
            return float(tree.val)
        case promql_parser.VectorSelector():
            return next(reversed(_values(tree, figures)), None)
        case promql_parser.Call():
            over, *others = tree.args
            found = _values(over.vector_selector, figures)[-int(over.range.total_seconds() / 60) :]
            return _FUNCTIONS[tree.func.name](found, *(value_of(one, figures) for one in others))
        case promql_parser.BinaryExpr():
            return _combined(str(tree.op), value_of(tree.lhs, figures), value_of(tree.rhs, figures))
    raise NotImplementedError(tree)


def _combined(sign: str, left: float | None, right: float | None) -> float | None:
    if sign in ("and", "unless"):
        return left if (right is None) == (sign == "unless") else None
    if left is None or right is None:
        return None
    result = _OPERATORS[sign](left, right)
    return result if sign in "+*/" else left if result else None


def _values(selector: Any, figures: Figures) -> Sequence[float]:
    known = figures.get(selector.name, ())
    return [known] * 60 if isinstance(known, float | int) else known


def _predict(values: Sequence[float], seconds: float) -> float:
    slope, now = linear_regression(range(1 - len(values), 1), values)
    return now + slope * seconds / 60


_OPERATORS = {"+": add, "*": mul, "/": truediv, "<": lt, ">": gt, "==": eq}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "changes": lambda values: sum(before != after for before, after in pairwise(values)),
    "increase": lambda values: values[-1] - values[0],  # what it began with does not count
    "max_over_time": max,
    "min_over_time": min,
    "predict_linear": _predict,
}

METRICS = {figure.metric for figure in FIGURES if figure.metric} | ABOUT.keys()
METRICS |= OF_MIRRORS.keys() | OF_READERS.keys()
RULES = {
    rule["alert"].removeprefix("InformixCdc"): rule
    for group in settings("prometheus/alerts.yaml")["groups"]
    for rule in group["rules"]
}
TARGETS = [
    target for panel in settings("grafana/informix-cdc.json")["panels"] for target in panel["targets"]
]
EXPRESSIONS = sorted({each["expr"] for each in [*RULES.values(), *TARGETS]})

LEFT, CHUNKS = "snapshot_tables_left", "snapshot_chunks_total"
UNSEEN, ABANDONED = "unseen_transactions_total", "abandoned_transactions_total"
LATE, BEHIND = "capture_lag_seconds", "capture_lag_bytes"
HEADROOM, LOG = "headroom_bytes", "log_bytes"
FALLING = range(1000, 400, -10)
# A stream that has caught up, in three log files of 100: headroom falls by one file and rises again.
SAWING = [300 - 2 * (minute % 50) - 1 for minute in range(15, 48)]

# alarm: figures that make it fire, and figures that do not
CASES: dict[str, tuple[Figures, Figures]] = {
    "Down": ({"up": 0}, {"up": 1}),
    "CrashLoop": ({"start_time_seconds": [1, 2, 2, 3, 4]}, {"start_time_seconds": [7, 8, 8, 9]}),
    "MirrorTableStopped": ({"mirror_stopped_tables": 1}, {"mirror_stopped_tables": 0}),
    "MirrorTableDiffers": ({"differences": 1}, {"differences": 0}),
    "MirrorTableNotVerified": ({"verified_seconds_ago": 604801}, {"verified_seconds_ago": 604799}),
    "DataLoss": ({"data_losses_total": 1}, {"data_losses_total": [1] + [0] * 2880}),
    "LogWrap": ({HEADROOM: 19, LOG: 100}, {HEADROOM: 21, LOG: 100}),
    "LogWrapSoon": ({HEADROOM: FALLING, LOG: 1000}, {HEADROOM: FALLING, LOG: 800}),
    "Behind": ({"lag_seconds": 310}, {"lag_seconds": 290}),
    "ReadingBehind": ({LATE: 130, BEHIND: 70000}, {LATE: 110, BEHIND: 70000}),
    "ReadingFarBehind": ({BEHIND: 11, LOG: 100}, {BEHIND: [1] + [11] * 9, LOG: 100}),
    "Stalled": ({"stalled": 1}, {"stalled": 0}),
    "TableAltering": ({"altering_tables": 1}, {"altering_tables": [1] * 9 + [0]}),
    "Paused": ({"paused": 1}, {"paused": 0}),
    "Reconnecting": ({"reconnects_total": [0, 1, 2, 3, 4]}, {"reconnects_total": [50, 51, 52, 53]}),
    "LongTransaction": ({"oldest_open_seconds": 3700}, {"oldest_open_seconds": 3500}),
    "TransactionsLeftOut": ({UNSEEN: 1, ABANDONED: 0}, {UNSEEN: 0, ABANDONED: 0}),
    "LogUnknown": ({"caught_up": 1}, {"caught_up": 1, LOG: 1000}),
    "ReaderBehind": ({"reader_waiting_bytes": 9e9}, {"reader_waiting_bytes": 8e9}),
    "ReaderAway": ({"reader_seen_seconds_ago": 172801}, {"reader_seen_seconds_ago": 172799}),
    "SnapshotStands": ({LEFT: 1, CHUNKS: 7}, {LEFT: 1, CHUNKS: range(30)}),
}


def fires(alarm: str, figures: Figures) -> bool:
    series = {name if name == "up" else f"informix_cdc_{name}": figures[name] for name in figures}
    return value_of(promql_parser.parse(RULES[alarm]["expr"]), series) is not None


@pytest.mark.parametrize("alarm", RULES)
def test_an_alarm_fires_when_it_should_and_only_then(alarm: str) -> None:
    assert [fires(alarm, figures) for figures in CASES[alarm]] == [True, False]


def test_a_false_alarm_of_the_past_stays_silent_and_a_missed_one_fires() -> None:
    assert not fires("LogWrapSoon", {HEADROOM: SAWING, LOG: 300})
    assert not fires("LogWrapSoon", {HEADROOM: 300, LOG: 1000})
    assert not fires("SnapshotStands", {LEFT: 0, CHUNKS: 7})
    # the log is read to its end, and one transaction has been open for an hour
    assert not fires("ReadingBehind", {LATE: 3600, BEHIND: 4096})
    # a start has set the counter to 0 again
    assert fires("DataLoss", {"data_losses_total": [1] + [0] * 120})
    assert fires("TransactionsLeftOut", {UNSEEN: 0, ABANDONED: 1})


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_parses_and_names_metrics_that_exist(expression: str) -> None:
    promql_parser.parse(expression.replace("$__rate_interval", "5m"))
    named = set(re.findall(r"informix_cdc_\w+", expression))
    assert named <= METRICS
    assert named or expression.startswith('up{job="informix-cdc"}')


def test_each_alarm_is_in_the_runbook_and_links_to_a_heading_of_it() -> None:
    manual = (ROOT / "docs/operations/monitoring.md").read_text()
    headings = {
        f"{page.name}#{re.sub(r'[^a-z0-9_ -]', '', title.lower()).replace(' ', '-')}"
        for page in (ROOT / "docs/operations").glob("*.md")
        for title in re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    }
    for rule in RULES.values():
        base, _, heading = rule["annotations"]["runbook_url"].partition("/operations/")
        assert base == "{{ $externalLabels.manual }}"
        assert heading in headings, rule["alert"]
        assert f"| `{rule['alert']}` |" in manual
    labels = settings("prometheus/prometheus.yml")["global"]["external_labels"]
    assert labels["manual"].startswith("https://")


def test_the_dashboard_asks_the_datasource_that_is_provisioned_for_metrics_that_exist() -> None:
    (source,) = settings("grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    text = (DOCKER / "grafana/informix-cdc.json").read_text()
    assert set(re.findall(r'"datasource": \{[^}]*"uid": "(.*)"', text)) == {source["uid"]}
    assert set(re.findall(r"informix_cdc_\w+", text)) <= METRICS  # its variables have queries too


def test_each_panel_has_a_description_of_its_own_and_an_axis_for_each_unit() -> None:
    panels = json.loads((DOCKER / "grafana/informix-cdc.json").read_text())["panels"]
    described = [panel["description"] for panel in panels]
    assert len(described) == len(set(described))
    for panel in panels:
        if panel["type"] != "timeseries":
            continue
        own = {
            override["matcher"]["options"]
            for override in panel["fieldConfig"]["overrides"]
            if {"id": "custom.axisPlacement", "value": "right"} in override["properties"]
        }
        units = {_UNIT.search(each["expr"])[1] for each in panel["targets"] if each["refId"] not in own}  # type: ignore[index]
        assert len(units & {"seconds", "bytes", "percent", "keys"}) <= 1, panel["title"]


_UNIT = re.compile(r"informix_cdc_\w*?_?([a-z]+?)(?:_total)?\{")
