"""The parts of `make containers` that need no engine: pods as containers, refusals, and the table."""

from __future__ import annotations

import json
import ssl
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from harness.capture.scraping import free_port
from harness.servers.tls import make_certificate
from lab.containers import __main__ as program
from lab.containers import cluster, engine, on_kubernetes
from lab.containers.engine import Engine, Failed, NotHere


class Recorded(Engine):
    """An engine that runs nothing."""

    commands: list[list[str]]

    def docker(self, *words: str | Path, seconds: float = 600) -> str:
        self.commands.append([str(word) for word in words])
        return ""


@pytest.fixture
def recorded() -> Recorded:
    made = Recorded("none")
    object.__setattr__(made, "commands", [])
    return made


POD: dict[str, Any] = {
    "metadata": {
        "name": "driver-0",
        "labels": {"role": "driver"},
        "annotations": {"subdomain": "mirror"},
    },
    "spec": {
        "securityContext": {"runAsUser": 7, "runAsGroup": 8},
        "volumes": [
            {"name": "settings", "configMap": {"name": "files"}},
            {"name": "temporary", "emptyDir": {}},
        ],
        "containers": [
            {
                "image": "an-image",
                "args": ["driver", "--name=$(POD)", "$(NONE)"],
                "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "securityContext": {"readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [
                    {"name": "settings", "mountPath": "/etc/x"},
                    {"name": "temporary", "mountPath": "/tmp"},
                ],
            }
        ],
    },
}


def test_a_pod_is_a_container_with_its_rights_variables_and_files(
    recorded: Recorded, tmp_path: Path
) -> None:
    made = cluster.Cluster(recorded, "net", "10.1.2", tmp_path)
    made.create("configmaps", {"metadata": {"name": "files"}, "data": {"a.toml": "x = 1"}})
    made.create("pods", POD)
    while made.objects["pods", "driver-0"]["status"]["phase"] != "Succeeded":
        time.sleep(0.01)
    (words,) = recorded.commands
    assert {"--ip=10.1.2.10", "--network-alias=driver-0.mirror", "--user=7:8"} <= set(words)
    assert {"--read-only", "--cap-drop=ALL", "--env=POD=driver-0"} <= set(words)
    assert f"--volume={tmp_path}/files:/etc/x:ro" in words
    assert (tmp_path / "files/a.toml").read_text() == "x = 1"
    assert words[-4:] == ["an-image", "driver", "--name=driver-0", "$(NONE)"]


def test_calls_of_the_api_are_counted_by_their_verbs_and_what_is_unknown_is_refused(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = cluster.Cluster(recorded, "net", "10.1.2", tmp_path)
    monkeypatch.setattr(cluster, "PORT", port := free_port())
    certificate, key = make_certificate(tmp_path)
    trusted = ssl.create_default_context(cafile=certificate)

    def ask(method: str, path: str, body: object = None) -> int:
        url = f"https://localhost:{port}/api/v1/namespaces/default/{path}"
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(url, data, method=method)
        try:
            with urllib.request.urlopen(request, context=trusted) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    config = {"metadata": {"name": "a", "labels": {"x": "1"}}}
    with cluster.served(made, "127.0.0.1", certificate, key):
        assert ask("POST", "configmaps", config) == 201
        assert ask("GET", "configmaps/a") == 200
        assert ask("DELETE", "configmaps?labelSelector=x%3D2") == 200
        assert ("configmaps", "a") in made.objects
        assert ask("DELETE", "configmaps?labelSelector=x%3D1") == 200
        assert ask("GET", "configmaps/a") == 404
        assert ask("GET", "secrets") == 403
    verbs = {("configmaps", verb) for verb in ("create", "get", "deletecollection")}
    assert set(made.calls) == verbs | {("secrets", "list")}


def test_the_manifest_runs_the_emulator_in_place_of_the_server_and_nothing_else_changes() -> None:
    objects = on_kubernetes.objects()
    given = objects["ConfigMap"]["data"]["stores.toml"]
    text = on_kubernetes.with_server_of_ours(objects["ConfigMap"], 7)["data"]["stores.toml"]
    assert "example.com" in given
    assert "example.com" not in text
    changed = set(given.splitlines()) - set(text.splitlines())
    assert [line.split()[0] for line in sorted(changed)] == ["host", "into", "server"]


def test_without_an_engine_only_root_on_debian_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_words: object, **_more: object) -> str:
        raise Failed("Cannot connect to the Docker daemon")

    monkeypatch.setattr(engine, "output_of", refuse)
    monkeypatch.setattr(engine.os, "geteuid", lambda: 1000)
    said = list[str]()
    with pytest.raises(NotHere, match=r"^no Docker engine runs here\. Start one, or run this as root"):
        engine.engine(said.append).__enter__()
    assert said == []


def test_a_step_that_fails_is_a_line_of_the_table_and_the_next_runs() -> None:
    report = program.Report()

    def fail() -> str:
        raise Failed("docker run x: exit code 1\nits output")

    assert not report.add("first", fail)
    assert report.add("second", lambda: "fine")
    assert [(name, result) for name, _, result in report.lines] == [
        ("first", "FAILED: docker run x: exit code 1"),
        ("second", "fine"),
    ]
    assert report.failures == ["first: docker run x: exit code 1\nits output"]
