"""docker/ is linted and pinned, open to this machine only, and its files agree with each other."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from docker_files.docker_folder import COMPOSE, DOCKER, ROOT, SERVICES, VARIABLE, every, run, settings

PATHS = [path for path in DOCKER.rglob("*") if path.is_file() and path.name != ".env"]
TEXTS = {path.name: path.read_text() for path in PATHS if path.suffix not in (".md", ".pyc")}
IMAGE = TEXTS["Dockerfile"]
MOUNTS = {  # of each service: the sources by the places where they are mounted
    name: dict(text.split(":")[1::-1] for text in each.get("volumes", []))
    for name, each in SERVICES.items()
}
LINTERS = [
    "check-jsonschema --builtin-schema vendor.compose-spec docker/compose.yaml",
    "hadolint --config docker/.hadolint.yaml docker/client/Dockerfile",
    "shellcheck --external-sources docker/*.sh docker/*/*.sh",
]


@pytest.mark.slow
@pytest.mark.parametrize("command", LINTERS)
def test_a_linter_finds_nothing(command: str) -> None:
    result = run("sh", "-c", f"{Path(sys.executable).parent}/{command}")
    if result.returncode == 127:
        pytest.skip("not installed: no wheel for this platform")
    assert result.returncode == 0, result.stdout + result.stderr


def test_compose_reads_the_file_once_the_licence_is_accepted() -> None:
    if run("sh", "-c", "docker compose version").returncode:
        pytest.skip("docker compose is not installed here")
    config = "docker compose --env-file /dev/null -f docker/compose.yaml --profile '*' config --quiet"
    accepted = run("sh", "-c", config, LICENSE="accept", INFORMIX_CDC_PASSWORD="secret")
    assert accepted.returncode == 0, accepted.stderr
    assert "set LICENSE=accept" in run("sh", "-c", config, INFORMIX_CDC_PASSWORD="secret").stderr


def test_every_image_is_pinned_by_digest_or_by_tag_where_no_digest_is_known() -> None:
    builds = [each["build"].get("args", {}) for each in SERVICES.values() if "build" in each]
    images = {each["image"] for each in SERVICES.values() if "build" not in each}
    images |= {VARIABLE.sub(r"\g<text>", args["DRIVER_IMAGE"]) for args in builds if args}
    images |= set(re.findall(r"^(?:FROM |ARG (?:BASE|\w+_IMAGE)=)([^$\s]+)", IMAGE, re.MULTILINE))
    images -= set(re.findall(r"^FROM .* AS (\S+)", IMAGE, re.MULTILINE))
    assert len(images) == 8
    by_tag_alone = r"(icr\.io/informix|ibmcom|liaosnet)/[\w-]+:v?\d[\w.-]+"  # docker/README.md
    pinned = re.compile(rf"[\w./-]+:[a-z-]*\d[\w.-]+@sha256:[0-9a-f]{{64}}|{by_tag_alone}")
    assert [image for image in images if not pinned.fullmatch(image)] == []


def test_host_ports_are_for_this_machine_only_and_never_the_same() -> None:
    published = every("ports")
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in published)
    assert len({port.split(":")[1] for port in published}) == len(published)


def test_only_the_user_accepts_a_licence() -> None:
    accepted = re.compile(r"^\s*(- |ARG |ENV )?\w*LICENSE\W+accept", re.MULTILINE)
    assert [name for name, text in TEXTS.items() if accepted.search(text)] == []
    servers = [each for each in SERVICES.values() if "informix-developer" in each["image"]]
    assert {each["environment"]["LICENSE"][:11] for each in servers} == {"${LICENSE:?"}


def test_no_password_is_in_a_file() -> None:
    public = {".env.example", "live.sh"}  # the password of the image, as in its description
    assert {name for name, text in TEXTS.items() if "in4mix" in text} == public
    assigned = re.compile(r"(?:pass(?:word)?|pwd)[\"']?[:=][ \t]*[\"']?(?!\{?\$\{)\w.*", re.IGNORECASE)
    assert assigned.findall(TEXTS["compose.yaml"] + IMAGE) == []
    assert all(secret.keys() == {"environment"} for secret in COMPOSE["secrets"].values())
    assert "docker/.env" in (ROOT / ".gitignore").read_text().splitlines()


def test_no_container_of_ours_runs_as_root() -> None:
    stages = {
        each.split()[2]: re.findall(r"^USER (\S+)", each, re.MULTILINE)
        for each in IMAGE.split("\nFROM ")[1:]
    }
    assert stages.pop("driver") == []  # it takes the driver, and is never run
    assert [users[-1] for users in stages.values()] == ["1000:1000"] * 3
    assert [name for name, each in SERVICES.items() if "user" in each] == []


def test_grafana_is_read_only_and_has_no_login() -> None:
    wanted = {
        "GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer",
        "GF_AUTH_BASIC_ENABLED": "false",  # admin/admin by HTTP, without the form
        "GF_AUTH_DISABLE_LOGIN_FORM": "true",
        "GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION": "true",
    }
    assert wanted.items() <= SERVICES["grafana"]["environment"].items()


def test_mounts_volumes_secrets_and_health_checks_of_services_exist() -> None:
    sources = {source for mounted in MOUNTS.values() for source in mounted.values()}
    bound = {source for source in sources if source.startswith(".")}
    assert [source for source in bound if not (DOCKER / source).exists()] == []
    assert sources - bound == COMPOSE["volumes"].keys()
    assert set(every("secrets")) == COMPOSE["secrets"].keys()
    assert all("healthcheck" in SERVICES[awaited] for awaited in every("depends_on"))
    for name in ("informix", "informix-14", "informix-12"):  # scripts and health check name this folder
        assert MOUNTS[name]["/informix-cdc"] == "./informix"
        assert MOUNTS[name]["/opt/ibm/config/post_init.sh"] == "./informix/post_init.sh"


def test_prometheus_scrapes_the_client_and_finds_its_alarms() -> None:
    config = settings(MOUNTS["prometheus"]["/etc/prometheus/prometheus.yml"])
    (job,), (alarms,) = config["scrape_configs"], config["rule_files"]
    words = dict(word.split("=", 1) for word in SERVICES["client"]["command"] if "=" in word)
    host, port = words["metricsAddress"].split(":")
    assert job["static_configs"] == [{"targets": [f"client:{port}"]}]
    assert (job["job_name"], host) == ("informix-cdc", "0.0.0.0")
    assert MOUNTS["prometheus"][f"/etc/prometheus/{alarms}"] == "./prometheus/alerts.yaml"


def test_grafana_finds_prometheus_and_its_dashboard() -> None:
    (source,) = settings("grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    (port,) = SERVICES["prometheus"]["ports"]
    assert source["url"] == f"http://prometheus:{port.rpartition(':')[2]}"
    (provider,) = settings("grafana/provisioning/dashboards/informix-cdc.yaml")["providers"]
    page = f"{provider['options']['path']}/informix-cdc.json"
    assert SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == page
    assert MOUNTS["grafana"][page] == "./grafana/informix-cdc.json"
    assert MOUNTS["grafana"]["/etc/grafana/provisioning"] == "./grafana/provisioning"


def test_files_that_the_image_copies_exist_and_pass_dockerignore() -> None:
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", IMAGE, re.MULTILINE)
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"}
    for source in " ".join(lines).split():
        assert (ROOT / source).exists(), source
        assert {source, str(Path(source).parent)} & let_through, source
