"""The compose file: valid, pinned, complete, and careful with licence and password."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from typing import Any

import pytest
from ruamel.yaml import YAML

from docker_files.compose_file import (
    COMPOSE,
    DOCKER,
    DOCKERFILES,
    README,
    ROOT,
    VARIABLE,
    compose,
    interpolated,
    lint,
    mounts,
    services,
    uses_informix,
)

PINNED = re.compile(r"^[\w./-]+:v?\d[\w.-]+(@sha256:[0-9a-f]{64})?$")
# Of these no public source gives a digest (docker/README.md).
BY_TAG_ALONE = ("icr.io/informix/", "ibmcom/informix-", "liaosnet/gbase8s:")
SERVERS = sorted(name for name, service in services().items() if uses_informix(service))


@pytest.mark.slow
def test_it_is_valid_by_the_schema_of_the_compose_specification() -> None:
    assert lint("check-jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE) == ""


def pulled_images() -> set[str]:
    pulled = {service["image"] for service in services().values() if "build" not in service}
    pulled |= {
        interpolated(part["build"]["args"]["DRIVER_IMAGE"], {})
        for part in (services()["live-tests"], compose()["x-gbase8s-client"])
    }
    for dockerfile in DOCKERFILES:
        text = dockerfile.read_text()
        pulled |= set(re.findall(r"^ARG \w+_IMAGE=(\S+)", text, re.MULTILINE))
        stages = set(re.findall(r"^FROM .* AS (\S+)", text, re.MULTILINE))
        pulled |= set(re.findall(r"^FROM ([^$\s]+)", text, re.MULTILINE)) - stages
    return pulled


def test_every_image_is_pinned_to_a_version() -> None:
    pulled = pulled_images()
    assert len(pulled) >= 4
    assert [image for image in pulled if not PINNED.match(image)] == []


def test_every_image_whose_digest_is_known_is_pinned_to_it() -> None:
    by_tag = [image for image in pulled_images() if "@sha256:" not in image]
    assert [image for image in by_tag if not image.startswith(BY_TAG_ALONE)] == []


def test_grafana_has_no_login_at_all() -> None:
    settings = services()["grafana"]["environment"]
    assert settings["GF_AUTH_BASIC_ENABLED"] == "false"  # admin/admin by HTTP, without the form
    assert settings["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert settings["GF_AUTH_DISABLE_LOGIN_FORM"] == "true"
    assert settings["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"


def test_the_drivers_image_is_one_with_a_client_sdk_and_can_be_chosen() -> None:
    """Of the server's tags only 12.10's ships one, so it is none of the server's business."""
    text = services()["live-tests"]["build"]["args"]["DRIVER_IMAGE"]
    default = interpolated(text, {})
    assert default == "ibmcom/informix-developer-database:12.10.FC12W1DE"  # the one that was seen to
    assert interpolated(text, {"DRIVER_IMAGE": "mine:1"}) == "mine:1"
    assert f"ARG DRIVER_IMAGE={default}\n" in (DOCKER / "client" / "Dockerfile").read_text()


def test_the_server_depends_on_no_image_that_is_built() -> None:
    assert "build" not in services()["informix"]
    assert "depends_on" not in services()["informix"]


def test_the_loader_finds_the_drivers_libraries_from_the_first_process_on() -> None:
    text = (DOCKER / "client" / "Dockerfile").read_text()
    found = re.search(r"LD_LIBRARY_PATH=(\S+)", text)
    assert found is not None
    folders = [folder.replace("${DRIVER_HOME}", "") for folder in found[1].split(":")]
    assert folders == ["/lib", "/lib/esql", "/lib/cli"]


def test_what_make_up_starts_needs_no_driver_and_no_licence_of_one() -> None:
    assert compose()["x-client"]["build"] == {
        "context": "..",
        "dockerfile": "docker/client/Dockerfile",
        "target": "client",
    }
    stages = (DOCKER / "client" / "Dockerfile").read_text().split("\nFROM ")
    (client,) = (stage for stage in stages if stage.splitlines()[0].endswith(" AS client"))
    assert "--from=driver" not in client
    for name in ("tail", "doctor", "client"):
        assert "transport=sqli" in str(services()[name]), name


def test_no_service_sets_what_the_connection_string_is_to_say() -> None:
    assert [name for name, each in services().items() if "DELIMIDENT" in str(each)] == []


def test_every_client_of_the_shop_names_its_locale() -> None:
    words = {name: str(services()[name]) for name in ("tail", "doctor", "client")}
    assert [name for name, text in words.items() if "ocale=en_US.utf8" not in text] == []


@pytest.mark.parametrize("name", ["gbase8s-doctor", "gbase8s-tail"])
def test_a_client_of_gbase_orders_unicode_as_its_server_does(name: str) -> None:
    assert services()[name]["environment"]["GL_USEGLU"] == "1"


@pytest.mark.parametrize("name", SERVERS)
def test_no_server_starts_before_the_user_has_accepted_the_licence(name: str) -> None:
    assert services()[name]["environment"]["LICENSE"].startswith("${LICENSE:?")


def test_the_licence_is_accepted_nowhere_in_our_files() -> None:
    lines = [
        f"{path.name}: {line}"
        for path in DOCKER.rglob("*")
        if path.is_file() and path.suffix != ".md"
        for line in path.read_text().splitlines()
        if re.match(r"\s*-?\s*LICENSE[:=]\s*accept", line)
    ]
    assert lines == []


def test_three_versions_run_side_by_side() -> None:
    versions = {services()[name]["image"].partition(":")[2][:2] for name in SERVERS}
    assert versions == {"12", "14", "15"}


def test_every_file_and_folder_that_is_mounted_exists() -> None:
    bound = [mount[0] for each in services().values() for mount in mounts(each) if mount[0][0] == "."]
    assert bound
    assert [path for path in bound if not (DOCKER / path).exists()] == []


def test_host_ports_are_for_this_machine_only_and_never_the_same() -> None:
    published = [port for service in services().values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in published)
    counted = Counter(port.split(":")[1] for port in published)
    assert [port for port, times in counted.items() if times > 1] == []


def settings(path: str) -> Any:
    return YAML(typ="safe").load(DOCKER / path)


def test_prometheus_asks_the_client_where_it_answers() -> None:
    (job,) = settings("prometheus/prometheus.yml")["scrape_configs"]
    words = dict(word.split("=", 1) for word in services()["client"]["command"] if "=" in word)
    assert job["static_configs"] == [{"targets": [f"client:{words['metricsPort']}"]}]
    assert words["metricsHost"] == "0.0.0.0"


def test_prometheus_finds_its_alarms_beside_its_settings() -> None:
    mounted = {mount[1] for mount in mounts(services()["prometheus"])}
    alarms = settings("prometheus/prometheus.yml")["rule_files"]
    assert mounted == {"/etc/prometheus/prometheus.yml", *(f"/etc/prometheus/{one}" for one in alarms)}


def test_grafana_finds_prometheus_and_its_dashboard() -> None:
    (source,) = settings("grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    (provider,) = settings("grafana/provisioning/dashboards/informix-cdc.yaml")["providers"]
    assert source["url"] == "http://prometheus:9090"
    folder = provider["options"]["path"]
    mounted = {mount[1] for mount in mounts(services()["grafana"])}
    assert mounted == {"/etc/grafana/provisioning", f"{folder}/informix-cdc.json"}


def test_volumes_and_secrets_are_declared_and_used() -> None:
    named = {mount[0] for each in services().values() for mount in mounts(each) if mount[0][0] != "."}
    assert named == set(compose()["volumes"])
    secrets = {name for service in services().values() for name in service.get("secrets", [])}
    assert secrets == set(compose()["secrets"])


def test_what_a_service_waits_for_is_a_service_with_a_health_check() -> None:
    awaited = {name for each in services().values() for name in each.get("depends_on", {})}
    assert awaited
    assert all("healthcheck" in services()[name] for name in awaited)


def variables() -> set[str]:
    used = {match["name"] for match in VARIABLE.finditer(COMPOSE.read_text())}
    return used | {secret["environment"] for secret in compose()["secrets"].values()}


def test_every_variable_is_explained_in_the_readme() -> None:
    assert [name for name in variables() if f"| `{name}` |" not in README.read_text()] == []


def test_every_variable_without_a_default_is_in_the_example() -> None:
    text = COMPOSE.read_text()
    optional = {match["name"] for match in VARIABLE.finditer(text) if match["otherwise"] == ":-"}
    example = re.findall(r"^(\w+)=", (DOCKER / ".env.example").read_text(), re.MULTILINE)
    assert set(example) == variables() - optional


def test_the_users_own_settings_stay_out_of_git() -> None:
    assert "docker/.env" in (ROOT / ".gitignore").read_text().splitlines()


def test_no_password_is_in_the_compose_file_an_image_or_a_script() -> None:
    holding = {p.name for p in DOCKER.rglob("*") if p.is_file() and "in4mix" in p.read_text()}
    assert holding <= {".env.example", "README.md"}
    words = [str(service.get("command", "")) for service in services().values()]
    words += [str(service.get("entrypoint", "")) for service in services().values()]
    assert not re.search(r"password=", " ".join(words), re.IGNORECASE)


def compose_config(**environment: str) -> subprocess.CompletedProcess[str]:
    """Let compose itself read the file, where it is installed; it needs no engine for that."""
    docker = shutil.which("docker")
    version = [str(docker), "compose", "version"]
    if docker is None or subprocess.run(version, capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not installed here")
    asked = ["compose", "--env-file", os.devnull, "-f", COMPOSE, "--profile", "*", "config", "--quiet"]
    given = {name: value for name, value in os.environ.items() if name not in variables()}
    return subprocess.run(
        [docker, *asked], env=given | environment, capture_output=True, text=True, check=False
    )


def test_compose_reads_the_file_once_the_licence_is_accepted() -> None:
    result = compose_config(LICENSE="accept", INFORMIX_CDC_PASSWORD="secret")
    assert result.returncode == 0, result.stderr


def test_compose_says_what_to_do_while_it_is_not() -> None:
    result = compose_config(INFORMIX_CDC_PASSWORD="secret")
    assert result.returncode != 0
    assert "set LICENSE=accept" in result.stderr
