"""Checks of the built files: metadata, contents, the page on the index, licences, bill of materials."""

from __future__ import annotations

import email
import json
import re
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

from release.building import Project
from release.commands import StepFailed, run
from release.licences import refused

_BIN = Path(sys.executable).parent
_RENDER = "import sys; from readme_renderer.markdown import render; print(render(sys.stdin.read()))"
_LEADS_TO = re.compile(r'\b(?:href|src)="([^"]*)"')
_OF_A_HEADING = "#user-content-"  # the renderer's own link of each heading to itself
JAR = "informix_cdc/jvm/informix-cdc.jar"
SPEC = "1.6"  # of CycloneDX


def check_metadata(wheel: Path, sdist: Path) -> str:
    """Let the index's own checks read the metadata and the description; return what was found."""
    run(_BIN / "twine", "check", "--strict", wheel, sdist)
    return "twine check --strict"


def check_contents(wheel: Path, sdist: Path) -> str:
    """Check that nothing is missing or too much in both files; return how many there are."""
    run(_BIN / "check-wheel-contents", wheel)
    names = zipfile.ZipFile(wheel).namelist()
    packages = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    wanted = {JAR, *(f"{package}/py.typed" for package in packages)}
    if lacking := wanted - set(names):
        raise StepFailed(f"{wheel.name} lacks {', '.join(sorted(lacking))}")
    with tarfile.open(sdist) as archive:
        there = archive.getnames()
    if not any(name.endswith(f"/{JAR}") for name in there):
        raise StepFailed(f"{sdist.name} lacks {JAR}: a wheel made from it would be slow.")
    return f"check-wheel-contents; {len(names)} files, {len(packages)} packages, typed, with the jar"


def check_page(wheel: Path, project: Project) -> str:
    """Render the description as an index does; return how many links and pictures it has.

    Raises:
        StepFailed: one is relative, or leads to another place than this release.
    """
    metadata = next(name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("/METADATA"))
    text = email.message_from_bytes(zipfile.ZipFile(wheel).read(metadata)).get_payload()
    script = Path(wheel.parent / "description.md")
    script.write_text(str(text), "utf-8")
    try:
        html = run("sh", "-c", f"'{sys.executable}' -c '{_RENDER}' < '{script}'")
    finally:
        script.unlink()
    targets = [each for each in _LEADS_TO.findall(html) if not each.startswith(_OF_A_HEADING)]
    if wrong := wrong_links(targets, project):
        raise StepFailed(f"the description has links that lead nowhere on an index: {wrong}")
    pictures = html.count("<img ")
    if not pictures:
        raise StepFailed("the index would show no picture of the description.")
    return f"{len(targets) - pictures} links and {pictures} pictures, all absolute"


def wrong_links(targets: list[str], project: Project) -> list[str]:
    """Return the links that are not absolute, or lead to another tag of the repository."""
    path = project.home.split("/", 3)[3]
    return [
        each
        for each in targets
        if not each.startswith(("https://", "mailto:"))
        or (f"/{path}/" in each and f"/{project.tag}/" not in each)
    ]


def check_licences(python: Path) -> tuple[str, list[tuple[str, str, str]]]:
    """Check the licences of all that is installed but the product; return the packages as rows.

    Raises:
        StepFailed: one is not allowed.
    """
    command = ("--python", python, "--from=mixed", "--format=json", "--with-system")
    found = json.loads(run(_BIN / "pip-licenses", *command))
    rows = [
        (each["Name"], each["Version"], each["License"])
        for each in found
        if each["Name"] != "informix-cdc"
    ]
    if wrong := refused((name, licence) for name, _, licence in rows):
        raise StepFailed(
            "licences that are not allowed (.ci/release/licences.py):\n" + "\n".join(wrong)
        )
    return f"{len(rows)} dependencies, all permissive or MPL-2.0", sorted(rows)


def write_sbom(python: Path, pip_report: Path, project: Project, target: Path) -> str:
    """Write the bill of materials of the wheel as installed; return how many components it has.

    Args:
        python: of the environment with the wheel and its dependencies.
        pip_report: what pip wrote of this installation.
        project: of the wheel.
        target: the file to write.
    """
    made = run(
        *(_BIN / "cyclonedx-py", "environment", "--output-reproducible", "--spec-version", SPEC),
        *("--output-format", "JSON", python),
    )
    archives = installed_archives(json.loads(pip_report.read_text("utf-8")))
    bill = about_wheel(json.loads(made), project, archives)
    target.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n", "utf-8")
    run(_BIN / "python", "-c", _VALIDATE, target)
    return (
        f"CycloneDX {SPEC}, {len(bill['components'])} components with the SHA-256 of their files, valid"
    )


_VALIDATE = f"""
import pathlib, sys
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
validator = JsonStrictValidator(SchemaVersion.from_version("{SPEC}"))
wrong = validator.validate_str(pathlib.Path(sys.argv[1]).read_text())
sys.exit(str(wrong) if wrong else 0)
"""


def installed_archives(pip_report: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return URL and SHA-256 of the file of each distribution that pip installed, by plain name."""
    return {
        plain_name(each["metadata"]["name"]): (
            each["download_info"]["url"],
            each["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for each in pip_report["install"]
    }


def plain_name(name: str) -> str:
    """Return the name of a distribution as an index spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def about_wheel(
    bill: dict[str, Any], project: Project, archives: dict[str, tuple[str, str]]
) -> dict[str, Any]:
    """Return a bill of an environment as that of the wheel that was installed into it.

    The wheel becomes its subject; where files were on this machine is left out. Each component has
    the file that was installed, with its digest.

    Args:
        bill: of the environment.
        project: of the wheel.
        archives: URLs and digests, by plain name.
    """
    (product,) = (each for each in bill["components"] if each["name"] == project.name)
    place, digest = archives[project.name]
    kept = ("bom-ref", "name", "version", "description", "licenses")
    subject = {
        **{key: product[key] for key in kept if key in product},
        "type": "library",
        "purl": f"pkg:pypi/{project.name}@{project.version}?file_name={place.rpartition('/')[2]}",
        "hashes": [{"alg": "SHA-256", "content": digest}],
        "externalReferences": [{"type": "vcs", "url": project.home}],
    }
    others = [with_archive(each, archives) for each in bill["components"] if each is not product]
    return {**bill, "metadata": {**bill["metadata"], "component": subject}, "components": others}


def with_archive(component: dict[str, Any], archives: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """Return a component with a reference to the file that was installed."""
    url, digest = archives[plain_name(component["name"])]
    hashes = [{"alg": "SHA-256", "content": digest}]
    shown = url if url.startswith("https://") else url.rpartition("/")[2]  # of a folder of this machine
    archive = {"type": "distribution", "url": shown, "hashes": hashes}
    return {**component, "externalReferences": [*component.get("externalReferences", []), archive]}
