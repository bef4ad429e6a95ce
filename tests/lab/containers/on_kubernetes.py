"""docker/kubernetes/mirror.yaml on the stand-in for Kubernetes: driver, executors, and a restart."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from docker_files.docker_folder import DOCKER
from lab.containers.cluster import API, Cluster, served
from lab.containers.engine import Engine, Failed, output_of
from lab.containers.images import CLIENT
from lab.containers.runs import COUNT_ROWS, require

MANIFEST = DOCKER / "kubernetes/mirror.yaml"
_NETWORK, _SUBNET = "informix-cdc-lab", "10.213.77"
_GATEWAY = f"{_SUBNET}.1"
_STATE = "informix-cdc-lab-kubernetes"
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_SECONDS = 600
Thing = dict[str, Any]


def mirror(engine: Engine, port: int, folder: Path) -> str:
    """Run the manifest's driver until executors have read rows, stop it, and start it again.

    Args:
        engine: for its containers.
        port: of the emulator, on all addresses of this machine.
        folder: with the file `password`.
    """
    given = objects()
    with _cluster(engine, folder) as cluster:
        cluster.create("configmaps", with_server_of_ours(given["ConfigMap"], port))
        name = f"{given['StatefulSet']['metadata']['name']}-0"
        for _ in range(2):
            cluster.create("pods", _driver(given["StatefulSet"], name, folder))
            tasks = _until(cluster, name, lambda: _tasks_of_executors(cluster))
            counts = _counts(engine)
            engine.docker("stop", "--time=60", name)
            _until(cluster, name, lambda: cluster.objects["pods", name]["status"]["phase"] != "Running")
            left = cluster.selected("pods", "spark-role=executor")
            require(left == [], f"executors are left: {left}")
            cluster.delete("pods", name)
        allowed = _allowed(given["Role"])
        refused = sorted(
            f"{verb} {kind}" for kind, verb in cluster.calls if (kind, verb) not in allowed
        )
        require(refused == [], f"not in the Role: {refused}")
        unused = sorted(f"{verb} {kind}" for kind, verb in allowed - cluster.calls.keys())
    rights = f"rights not used: {', '.join(unused) or 'none'}"
    return f"{tasks} tasks in 2 executors; {counts} rows; driver stopped and restarted; {rights}"


def objects() -> dict[str, Thing]:
    """Return the objects of the manifest by their kinds."""
    return {each["kind"]: each for each in YAML(typ="safe").load_all(MANIFEST)}


@contextlib.contextmanager
def _cluster(engine: Engine, folder: Path) -> Iterator[Cluster]:
    engine.docker("network", "create", f"--subnet={_SUBNET}.0/24", f"--gateway={_GATEWAY}", _NETWORK)
    account = folder / "account"
    account.mkdir()
    certificate, key = account / "ca.crt", folder / "api.key"
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        "-subj",
        f"/CN={API}",
    ]
    output_of(*words, "-addext", f"subjectAltName=DNS:{API}", "-keyout", key, "-out", certificate)
    (account / "token").write_text("token")
    cluster = Cluster(engine, _NETWORK, _SUBNET, folder, (f"--add-host={API}:{_GATEWAY}",))
    try:
        with served(cluster, _GATEWAY, certificate, key):
            yield cluster
    finally:
        for each in list(cluster.objects):
            cluster.delete(*each)
        engine.docker("network", "rm", _NETWORK)


def with_server_of_ours(config: Thing, port: int) -> Thing:
    """Return the ConfigMap with the emulator as its server, and a folder for the tables."""
    text = config["data"]["stores.toml"]
    for old, new in {
        '"informix.example.com"': f'"{_GATEWAY}"\nport = {port}',
        '"ids1"': '"informix"',
        '"s3://lake.example.com/stores"': '"/var/lib/informix-cdc/lake"',
    }.items():
        require(old in text, f"{old} is not in stores.toml")
        text = text.replace(old, new)
    config["data"]["stores.toml"] = text
    return config


def _driver(stateful_set: Thing, name: str, folder: Path) -> Thing:
    """Return the pod of the StatefulSet, with what a cluster would mount."""
    template = stateful_set["spec"]["template"]
    subdomain = {"subdomain": stateful_set["spec"]["serviceName"]}
    pod = {"metadata": {**template["metadata"], "name": name, "annotations": subdomain}}
    spec = dict(template["spec"])
    (given,) = spec["containers"]
    container = {**given, "image": CLIENT}
    container["env"] = [
        each | ({"value": CLIENT} if each["name"] == "IMAGE" else {}) for each in given["env"]
    ]
    container["volumeMounts"] = [*given["volumeMounts"], {"name": "account", "mountPath": _ACCOUNT}]
    places = {"state": _STATE, "account": f"{folder}/account", "password": f"{folder}/secret"}
    kept = [each for each in spec["volumes"] if each["name"] not in places]
    mounted = [{"name": each, "hostPath": {"path": path}} for each, path in places.items()]
    return pod | {"spec": {**spec, "containers": [container], "volumes": kept + mounted}}


def _tasks_of_executors(cluster: Cluster) -> int:
    """Return how many tasks two executors have run, 0 as long as one has run none."""
    pods = cluster.selected("pods", "spark-role=executor")
    counts = []
    for pod in pods:
        with contextlib.suppress(Failed):
            logs = cluster.engine.docker("logs", pod["metadata"]["name"])
            counts.append(logs.count("Finished task"))
    return sum(counts) if len(counts) == 2 and all(counts) else 0


def _until(cluster: Cluster, driver: str, wanted: Callable[[], int | bool]) -> int:
    """Wait for something of the driver's; Failed with the end of its log if it ends before."""
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        if found := wanted():
            return int(found)
        if cluster.objects["pods", driver]["status"]["phase"] == "Failed":
            break
        time.sleep(1)
    logs = cluster.engine.docker("logs", "--tail=40", driver)
    raise Failed(f"the driver {driver} has not done what it must:\n{logs}")


def _counts(engine: Engine) -> str:
    words = [
        "run",
        "--rm",
        f"--volume={_STATE}:/var/lib/informix-cdc",
        CLIENT,
        "python",
        "-c",
        COUNT_ROWS,
    ]
    tables = ("customers", "orders", "items")
    counts = list(map(int, engine.docker(*words, "/var/lib/informix-cdc/lake", *tables).split()))
    require(all(counts), f"{tables}: {counts}")
    return " + ".join(map(str, counts))


def _allowed(role: Thing) -> set[tuple[str, str]]:
    rules = role["rules"]
    return {(kind, verb) for rule in rules for kind in rule["resources"] for verb in rule["verbs"]}
