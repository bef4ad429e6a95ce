"""Prometheus and Grafana are told of metrics that exist, in files of the form that they read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from ruamel.yaml import YAML

from informix_cdc.monitoring.figures import ABOUT, FIGURES

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
METRICS = {figure.metric for figure in FIGURES if figure.metric} | ABOUT.keys()
LABELS = {"server", "database", "tables", "instance", "job"}
VARIABLES = {"$__rate_interval": "5m", "$server": ".*", "$tables": ".*"}


def loaded(path: str) -> Any:
    return YAML(typ="safe").load((DOCKER / path).read_text())


def dashboard() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((DOCKER / "grafana/informix-cdc.json").read_text())
    return content


def alerts() -> list[dict[str, Any]]:
    return [rule for group in loaded("prometheus/alerts.yaml")["groups"] for rule in group["rules"]]


def expressions() -> Iterator[tuple[str, str]]:
    for rule in alerts():
        yield rule["alert"], rule["expr"]
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield f"{panel['title']}, {target['refId']}", target["expr"]


@pytest.mark.parametrize(("where", "expression"), [pytest.param(*e, id=e[0]) for e in expressions()])
def test_an_expression_parses_and_names_metrics_that_exist(where: str, expression: str) -> None:
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    promql_parser.parse(expression)
    named = set(re.findall(r"informix_cdc_\w+", expression))
    assert named <= METRICS, where
    assert named or expression.startswith("up{")


def test_the_parser_would_notice() -> None:
    with pytest.raises(ValueError, match=r"\S"):
        promql_parser.parse("increase(informix_cdc_rows_total) >")


def test_every_alarm_says_how_bad_it_is_and_which_part_of_the_runbook_helps() -> None:
    manual = (ROOT / "docs/operations.md").read_text()
    headings = {
        re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", manual, re.M)
    }
    for rule in alerts():
        assert rule["labels"]["severity"] in ("critical", "warning")
        page, _, heading = rule["annotations"]["runbook"].partition("#")
        assert page == "docs/operations.md"
        assert heading in headings, rule["alert"]
        used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert used <= LABELS
        assert f"| `{rule['alert']}` |" in manual


def test_prometheus_finds_its_rules_and_the_client_of_compose() -> None:
    config = loaded("prometheus/prometheus.yml")
    assert config["rule_files"] == ["alerts.yaml"]
    (job,) = config["scrape_configs"]
    assert job["job_name"] == "informix-cdc"
    assert job["static_configs"] == [{"targets": ["client:9187"]}]
    assert 'up{job="informix-cdc"} == 0' in [rule["expr"] for rule in alerts()]


def test_grafana_s_dashboard_asks_the_datasource_that_is_provisioned() -> None:
    provisioned = loaded("grafana/provisioning/datasources/prometheus.yaml")
    (datasource,) = provisioned["datasources"]
    assert provisioned["apiVersion"] == 1
    assert datasource["type"] == "prometheus"
    assert datasource["url"] == "http://prometheus:9090"
    content = dashboard()
    asked = {
        place["datasource"]["uid"]
        for panel in content["panels"]
        for place in [panel, *panel["targets"]]
    } | {variable["datasource"]["uid"] for variable in content["templating"]["list"]}
    assert asked == {datasource["uid"]}


def test_grafana_finds_dashboards_where_its_provider_looks() -> None:
    provisioned = loaded("grafana/provisioning/dashboards/informix-cdc.yaml")
    (provider,) = provisioned["providers"]
    assert (provisioned["apiVersion"], provider["type"]) == (1, "file")
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"


def test_grafana_s_front_page_is_the_dashboard() -> None:
    grafana = loaded("compose.yaml")["services"]["grafana"]
    page = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert f"./grafana/informix-cdc.json:{page}:ro" in grafana["volumes"]


def test_what_shows_the_present_forgets_a_query_that_is_gone() -> None:
    """A range query with `lastNotNull` would show its last value for the dashboard's whole hour."""
    stats = [panel for panel in dashboard()["panels"] if panel["type"] == "stat"]
    targets = [target for panel in stats for target in panel["targets"]]
    assert all(target["instant"] and not target["range"] for target in targets)
    assert 'up{job="informix-cdc"}' in [target["expr"] for target in targets]


def test_a_legend_says_which_server() -> None:
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            which = "{{instance}}" if target["expr"].startswith("up{") else "{{server}}"
            assert which in target["legendFormat"], panel["title"]


def test_panels_lie_side_by_side_with_numbers_of_their_own() -> None:
    content = dashboard()
    assert {"uid", "title", "schemaVersion", "time", "templating"} <= content.keys()
    panels = content["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 10
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["type"] in ("stat", "timeseries")
        assert panel["targets"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_every_figure_of_lag_and_log_is_on_the_dashboard() -> None:
    shown = json.dumps(dashboard())
    wanted = ("lag_seconds", "lag_bytes", "headroom_bytes", "oldest_open_seconds", "paused", "stalls")
    assert all(f"informix_cdc_{name}" in shown for name in wanted)
