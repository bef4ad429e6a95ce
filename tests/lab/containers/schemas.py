"""The Kubernetes manifests by Kubernetes' schemas: 108 MB from PyPI, in an environment of their own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ruamel.yaml import YAML

from docker_files.docker_folder import DOCKER
from lab.containers.engine import FOLDER, output_of

_PACKAGE = "kubernetes-validate==1.37.0"  # with the schemas of all versions from 1.25 on
_VERSIONS = "import kubernetes_validate.utils as u; v = u.all_versions(); print(v[0], v[-1])"


def schemas(folder: Path) -> str:
    """Validate every manifest, and the template in one, with the oldest and the newest schemas."""
    python = FOLDER / "schemas/bin/python"
    if not python.exists():
        output_of(sys.executable, "-m", "venv", FOLDER / "schemas")
        output_of(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", _PACKAGE)
    template = folder / "executor.yaml"
    for each in YAML(typ="safe").load_all(DOCKER / "kubernetes/mirror.yaml"):
        if each["kind"] == "ConfigMap":
            pod = YAML(typ="safe").load(each["data"]["executor.yaml"])
            pod["metadata"]["name"] = "executor"  # Spark gives it one, and the program needs one
            template.write_text(json.dumps(pod))
    files = [*sorted((DOCKER / "kubernetes").glob("*.yaml")), template]
    versions = output_of(python, "-c", _VERSIONS).split()
    for version in versions:
        output_of(python, "-m", "kubernetes_validate", "--strict", "-k", version, *files)
    return f"{', '.join(file.name for file in files)}: accepted by {' and '.join(versions)}"
