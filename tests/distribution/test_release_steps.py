"""The steps of `make release` refuse what may not be released."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from informix_cdc.lake.sessions import session_settings
from informix_cdc.lake.settings import MirrorSettings
from manual.made_parts import ROOT
from manual.test_release import plain_name
from manual.test_versions import PROJECT
from release import __main__ as program
from release import building, licences, quickstart
from release.checking import about_wheel, installed_archives, with_archive
from release.commands import StepFailed

RELEASE = building.Project("informix-cdc", "1.2.3", "https://github.com/o/x", "0")


def test_a_tag_must_be_that_of_the_version_and_of_the_changelog() -> None:
    building.require_released("# Changelog\n\n## 1.2.3 (2026-12-01)\n", RELEASE, "v1.2.3")
    with pytest.raises(StepFailed, match=r"the tag is v1\.2\.4"):
        building.require_released("## 1.2.4 (2026-12-01)\n", RELEASE, "v1.2.4")
    with pytest.raises(StepFailed, match="has no section"):
        building.require_released("## 1.2.3 (not yet released)\n", RELEASE, "v1.2.3")


def test_builds_that_differ_are_refused(tmp_path: Path) -> None:
    one, other = (tmp_path / name / "a.whl" for name in ("one", "other"))
    for path, content in ((one, b"a"), (other, b"b")):
        path.parent.mkdir()
        path.write_bytes(content)
    building.require_same([one], [one])
    with pytest.raises(StepFailed, match=r"differ in a\.whl"):
        building.require_same([one], [other])
    with pytest.raises(StepFailed, match="other files"):
        building.require_same([one], [])


def test_the_sums_are_those_that_sha256sum_reads(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert building.sums([tmp_path / "a"]) == f"{digest}  a\n"


@pytest.mark.parametrize(
    "licence", ["MIT", "Apache-2.0 OR BSD-3-Clause", "MIT License; Apache Software License"]
)
def test_permissive_licences_are_allowed(licence: str) -> None:
    assert licences.refused([("a", licence)]) == []


@pytest.mark.parametrize(
    "licence",
    ["GPL-3.0-only", "MIT AND LGPL-2.1-or-later", "(MIT OR GPL-2.0-only) AND Zlib", "UNKNOWN", ""],
)
def test_others_are_refused_by_name(licence: str) -> None:
    assert licences.refused([("a", licence), ("b", "MIT")]) == [f"a: {licence}"]


def test_a_bill_of_materials_is_about_the_wheel_and_names_no_place_of_this_machine() -> None:
    product = {
        "bom-ref": "informix-cdc==1.2.3",
        "name": "informix-cdc",
        "version": "1.2.3",
        "externalReferences": [{"type": "distribution", "url": "file:///home/me/a.whl"}],
    }
    bill = {"metadata": {"tools": []}, "components": [product, {"name": "Some_Name"}]}
    installed = {"informix_cdc": "file:///home/me/a.whl", "some-name": "https://files.example/b.whl"}
    pip_report = {
        "install": [
            {
                "metadata": {"name": name},
                "download_info": {"url": url, "archive_info": {"hashes": {"sha256": f"of {name}"}}},
            }
            for name, url in installed.items()
        ]
    }
    made = about_wheel(bill, RELEASE, installed_archives(pip_report))
    assert made["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": "of informix_cdc"}]
    assert "?file_name=a.whl" in made["metadata"]["component"]["purl"]
    assert "/home/me" not in str(made)
    (other,) = made["components"]
    (archive,) = other["externalReferences"]
    assert archive["url"] == "https://files.example/b.whl"
    of_a_folder = with_archive({"name": "a"}, {"a": ("file:///home/me/c.whl", "d")})
    assert of_a_folder["externalReferences"][0]["url"] == "c.whl"
    assert archive["hashes"] == [{"alg": "SHA-256", "content": "of some-name"}]


def test_a_port_in_use_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(quickstart, "PORT", server.getsockname()[1])
        with pytest.raises(StepFailed, match="is in use"):
            quickstart.wait_for_free_port(0)
    quickstart.wait_for_free_port(0)


def test_each_python_of_this_machine_runs_the_quickstart_and_the_oldest_has_the_sdist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "first" / "source" / "README.md"
    page.parent.mkdir(parents=True)
    page.write_text("the page")
    ran: list[tuple[object, ...]] = []
    monkeypatch.setattr(program, "WORK", tmp_path)
    monkeypatch.setattr(program, "one_quickstart", lambda *given: ran.append(given) or "rows")
    here = {"3.12": Path("/12"), "3.13": Path("/13")}
    monkeypatch.setattr(quickstart, "interpreters", lambda: here)
    report = program.Report()
    wheel, sdist = Path("a.whl"), Path("a.tar.gz")
    program.run_quickstarts(report, RELEASE, wheel, sdist)
    assert ran == [
        (Path("/12"), "3.12", RELEASE, sdist, "the page"),
        (Path("/13"), "3.13", RELEASE, wheel, "the page"),
    ]
    assert list(report.table.columns[1].cells) == [
        "SKIPPED: no Python 3.11 on this machine",
        "rows",
        "rows",
    ]
    here.clear()
    with pytest.raises(StepFailed, match=r"none of Python 3\.11"):
        program.run_quickstarts(report, RELEASE, wheel, sdist)


def test_a_step_that_fails_has_its_row() -> None:
    report = program.Report()

    def fail() -> str:
        raise StepFailed("no")

    with pytest.raises(StepFailed):
        report.step("a check", fail)
    assert list(report.table.columns[0].cells) == ["a check"]
    assert "FAILED" in str(list(report.table.columns[1].cells))


def test_the_blocks_of_a_page_are_told_apart_by_their_language() -> None:
    page = "```bash\na\n```\ntext\n```\npip install 'x[y]'   # z\n```\n```python\nb\n```\n"
    assert [quickstart.blocks(page, name) for name in ("bash", "python")] == [["a\n"], ["b\n"]]
    assert quickstart.install_command(page) == "pip install 'x[y]'"


def test_the_quickstart_runs_with_each_python_that_is_supported() -> None:
    named = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each]
    assert list(quickstart.PYTHONS) == named


def test_the_extra_iceberg_allows_the_sparks_that_have_an_iceberg() -> None:
    (limit,) = (
        each for each in PROJECT["optional-dependencies"]["iceberg"] if each.startswith("pyspark")
    )
    below = re.fullmatch(r"pyspark<4\.(\d+)", limit)
    assert below is not None
    newest = int(below[1]) - 1
    iceberg = MirrorSettings(into="lake.stores", checkpoint="/c", format="iceberg")
    assert "iceberg" in session_settings(iceberg, {}, f"4.{newest}.1")["spark.jars.packages"]
    with pytest.raises(Exception, match="there is no iceberg package"):
        session_settings(iceberg, {}, f"4.{newest + 1}.0")


def test_the_tools_of_a_release_are_pinned_with_hashes() -> None:
    wanted = [
        plain_name(line)
        for line in (ROOT / ".ci/release/requirements.in").read_text().splitlines()
        if not line.startswith("#")
    ]
    pinned = (ROOT / ".ci/release/requirements.txt").read_text().replace("\\\n", "").splitlines()
    lines = [line for line in pinned if not line.startswith("#")]
    assert all(re.match(r"[\w.-]+==\S+", line) and " --hash=sha256:" in line for line in lines)
    assert set(wanted) <= {plain_name(line) for line in lines}
    tried = dict(
        line.split("==") for line in (ROOT / ".ci/constraints.txt").read_text().splitlines()[1:]
    )
    both = {name: line for line in lines if (name := line.partition("==")[0]) in tried}
    assert {"build", "hatchling", "pyspark"} <= both.keys()
    assert [line for name, line in both.items() if not line.startswith(f"{name}=={tried[name]} ")] == []
