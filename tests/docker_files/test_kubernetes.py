"""The Kubernetes manifests: accepted by Kubernetes' schemas, and their parts fit each other."""

from __future__ import annotations

import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from ruamel.yaml import YAML

from docker_files.docker_folder import DOCKER
from harness.servers.stores import source_options
from informix_cdc.capture.run import STOP_MARGIN_SECONDS
from informix_cdc.commands.cli import main as command_line
from informix_cdc.commands.configuration import read_capture_file, read_mirror_file
from informix_cdc.options import option_readers
from informix_cdc.options.source import SourceOptions

MANIFEST = DOCKER / "kubernetes/capture.yaml"
OBJECTS: list[dict[str, Any]] = list(YAML(typ="safe").load_all(MANIFEST))
CONFIG, SERVICE, POLICY, STATEFUL_SET = OBJECTS
(TOML,) = CONFIG["data"].items()
POD = STATEFUL_SET["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
VOLUMES = {each["name"]: each for each in POD["volumes"]}
MOUNTS = {each["name"]: PurePosixPath(each["mountPath"]) for each in CONTAINER["volumeMounts"]}
(CLAIM,) = STATEFUL_SET["spec"]["volumeClaimTemplates"]
MIRROR: dict[str, dict[str, Any]] = {
    each["kind"]: each for each in YAML(typ="safe").load_all(DOCKER / "kubernetes/mirror.yaml")
}
FILES: dict[str, str] = MIRROR["ConfigMap"]["data"]
SPARK = dict(line.split(None, 1) for line in FILES["spark.properties"].splitlines())
EXECUTOR: dict[str, Any] = YAML(typ="safe").load(FILES["executor.yaml"])
DRIVER_POD = MIRROR["StatefulSet"]["spec"]["template"]["spec"]
(DRIVER,) = DRIVER_POD["containers"]


@pytest.mark.parametrize("number", [0, -1], ids=["the oldest version", "the newest version"])
def test_the_schemas_of_kubernetes_accept_it(number: int) -> None:
    validating = pytest.importorskip(
        "kubernetes_validate", reason="pip install kubernetes-validate: it carries the schemas, 108 MB"
    )
    version = validating.utils.all_versions()[number]
    for each in (*OBJECTS, *MIRROR.values(), EXECUTOR):
        validating.validate(each, version, strict=True)
    with pytest.raises(validating.ValidationError):
        validating.validate({**SERVICE, "spec": {"portz": []}}, version, strict=True)


def test_it_has_the_objects_that_name_each_other() -> None:
    kinds = {(each["apiVersion"], each["kind"]) for each in OBJECTS}
    assert kinds == {
        *(("v1", "ConfigMap"), ("v1", "Service"), ("apps/v1", "StatefulSet")),
        ("networking.k8s.io/v1", "NetworkPolicy"),
    }
    labels = CONFIG["metadata"]["labels"]
    assert all(each["metadata"]["labels"] == labels for each in OBJECTS)
    spec = STATEFUL_SET["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"] == labels
    assert SERVICE["spec"]["selector"] == POLICY["spec"]["podSelector"]["matchLabels"] == labels
    [port] = SERVICE["spec"]["ports"]
    assert POLICY["spec"]["ingress"][0]["ports"] == [{"port": port["targetPort"]}]
    assert spec["serviceName"] == SERVICE["metadata"]["name"]
    assert VOLUMES["settings"]["configMap"]["name"] == CONFIG["metadata"]["name"]
    assert MOUNTS.keys() == VOLUMES.keys() | {CLAIM["metadata"]["name"]}
    (secret,) = (line for line in MANIFEST.read_text().splitlines() if "create secret" in line)
    assert f"generic {VOLUMES['password']['secret']['secretName']} --from-file=password=" in secret


def test_its_settings_are_those_of_a_capture_and_fit_its_volumes(tmp_path: Path) -> None:
    name, text = TOML
    file, password = tmp_path / name, tmp_path / "password"
    password.write_text("secret")
    file.write_text(text.replace(f"{MOUNTS['password']}/password", str(password)))
    settings = read_capture_file(file)
    source = settings.source
    assert source.connection.password_file == str(password)
    program, command, path = CONTAINER["command"]
    assert (program, command in command_line.commands) == ("informix-cdc", True)
    assert PurePosixPath(path) == MOUNTS["settings"] / name
    # the root of a volume is open to fsGroup, so a spool there would be refused
    assert PurePosixPath(source.spool.path).parent == MOUNTS["spool"]
    storage = option_readers()["maxSpoolBytes"](
        CLAIM["spec"]["resources"]["requests"]["storage"].removesuffix("i")
    )
    assert 0 < settings.retention_bytes < source.spool.max_bytes < storage


def test_its_probes_ask_what_the_process_serves() -> None:
    source = tomllib.loads(TOML[1])["source"]
    (port,), (served,) = CONTAINER["ports"], SERVICE["spec"]["ports"]
    host, number = source["metricsAddress"].split(":")
    assert port["containerPort"] == served["port"] == int(number)
    assert port["name"] == served["targetPort"] == CONTAINER["livenessProbe"]["httpGet"]["port"]
    assert host == "0.0.0.0"
    assert CONTAINER["startupProbe"]["httpGet"] == CONTAINER["livenessProbe"]["httpGet"]
    begun = CONTAINER["readinessProbe"]["exec"]["command"]
    assert begun == ["test", "-e", f"{source['spoolPath']}/capture.json"]


def test_it_runs_without_rights_that_it_does_not_need() -> None:
    pod, container = POD["securityContext"], CONTAINER["securityContext"]
    image = (DOCKER / "client/Dockerfile").read_text()
    assert f"\nUSER {pod['runAsUser']}:{pod['runAsGroup']}\n" in image
    assert (pod["runAsNonRoot"], pod["fsGroup"]) == (True, pod["runAsGroup"])
    assert pod["fsGroupChangePolicy"] == "OnRootMismatch"
    assert container["readOnlyRootFilesystem"]
    assert not container["allowPrivilegeEscalation"]
    assert container["capabilities"] == {"drop": ["ALL"]}
    assert not POD["automountServiceAccountToken"]
    assert VOLUMES["password"]["secret"]["defaultMode"] == 0o440


def test_it_has_one_capture_with_time_to_stop() -> None:
    longest_read = SourceOptions.parse(source_options(1)).connection.read_timeout_seconds
    assert POD["terminationGracePeriodSeconds"] > longest_read + 2 * STOP_MARGIN_SECONDS
    assert STATEFUL_SET["spec"]["replicas"] == 1


def test_the_objects_of_the_mirror_name_each_other() -> None:
    names = {each["metadata"]["name"] for each in MIRROR.values()}
    labels = MIRROR["ConfigMap"]["metadata"]["labels"]
    assert all(each["metadata"]["labels"] == labels for each in MIRROR.values())
    spec, (name,) = MIRROR["StatefulSet"]["spec"], names
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"] == labels
    assert MIRROR["Service"]["spec"]["selector"] == labels
    assert spec["serviceName"] == DRIVER_POD["serviceAccountName"] == name
    assert MIRROR["RoleBinding"]["roleRef"]["name"] == name
    assert [each["name"] for each in MIRROR["RoleBinding"]["subjects"]] == [name]
    mounted = {each["name"] for each in DRIVER["volumeMounts"]}
    claims = {each["metadata"]["name"] for each in spec["volumeClaimTemplates"]}
    assert mounted == claims | {each["name"] for each in DRIVER_POD["volumes"]}


def test_the_settings_of_the_mirror_fit_its_pod(tmp_path: Path) -> None:
    mounts = {each["name"]: each["mountPath"] for each in DRIVER["volumeMounts"]}
    file, password = tmp_path / "stores.toml", tmp_path / "password"
    password.write_text("secret")
    text = FILES["stores.toml"]
    assert f'passwordFile = "{mounts["password"]}/password"' in text
    file.write_text(text.replace(f"{mounts['password']}/password", str(password)))
    settings = read_mirror_file(file)
    source, pod = settings.source, f"{MIRROR['StatefulSet']['metadata']['name']}-0"
    host = f"{pod}.{MIRROR['Service']['metadata']['name']}"
    # the root of a volume is open to fsGroup, so a spool there would be refused
    assert PurePosixPath(settings.settings.checkpoint).parent == PurePosixPath(mounts["state"])
    ports = {each["name"]: each["containerPort"] for each in DRIVER["ports"]}
    assert source["delivery"] == f"grpc+tls://{host}:{ports['rows']}"
    assert source["metricsAddress"] == f"0.0.0.0:{ports['metrics']}"
    assert str(ports["driver"]) == SPARK["spark.driver.port"]
    assert str(ports["blocks"]) == SPARK["spark.driver.blockManager.port"]
    served = {each["targetPort"]: each["port"] for each in MIRROR["Service"]["spec"]["ports"]}
    assert served.items() <= ports.items()
    given = [word for word in DRIVER["args"] if not word.startswith("--conf=")]
    assert given == [
        "driver",
        f"--properties-file={mounts['settings']}/spark.properties",
        "/app/mirror.py",
        f"{mounts['settings']}/stores.toml",
    ]
    assert SPARK["spark.kubernetes.executor.podTemplateFile"] == f"{mounts['settings']}/executor.yaml"


def test_pods_of_the_mirror_have_no_right_that_they_do_not_need() -> None:
    image = (DOCKER / "client/Dockerfile").read_text()
    for pod in (DRIVER_POD, EXECUTOR["spec"]):
        context, (container,) = pod["securityContext"], pod["containers"]
        assert f"\nUSER {context['runAsUser']}:{context['runAsGroup']}\n" in image
        assert context["runAsNonRoot"]
        assert container["securityContext"] == CONTAINER["securityContext"]
    assert EXECUTOR["spec"]["automountServiceAccountToken"] is False
    assert "secret" not in FILES["executor.yaml"]
    rules = {each: rule["verbs"] for rule in MIRROR["Role"]["rules"] for each in rule["resources"]}
    assert sorted(rules) == ["configmaps", "persistentvolumeclaims", "pods", "services"]
    assert rules["services"] == rules["persistentvolumeclaims"] == ["list", "deletecollection"]
