"""The workflows fit GitHub's schema, are pinned, have few rights, and run words of make that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from manual.made_parts import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in WORKFLOWS}
CONTENT: dict[str, Any] = {name: YAML(typ="safe").load(text) for name, text in TEXTS.items()}
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.dependabot": [ROOT / ".github/dependabot.yml"],
}


@pytest.mark.slow
@pytest.mark.parametrize("schema", SCHEMAS)
def test_each_file_fits_its_schema(schema: str) -> None:
    command = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", schema]
    done = subprocess.run([*command, *SCHEMAS[schema]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_those_that_the_manual_names() -> None:
    page = (ROOT / "docs/RELEASING.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(\.\./\.github/workflows/([\w.]+)\)", page)) == set(TEXTS)


@pytest.mark.parametrize("name", TEXTS)
def test_actions_are_pinned_by_commit_with_their_version(name: str) -> None:
    used = re.findall(r"uses: (.+)", TEXTS[name])
    assert used
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [each for each in used if not pinned.fullmatch(each)] == []


def test_one_action_has_one_pin() -> None:
    used = {each for text in TEXTS.values() for each in re.findall(r"uses: (.+)", text)}
    assert len({each.partition("@")[0] for each in used}) == len(used)


@pytest.mark.parametrize("name", TEXTS)
def test_a_workflow_may_read_and_a_job_no_more_than_it_needs(name: str) -> None:
    assert CONTENT[name]["permissions"] == {"contents": "read"}
    more = {
        job: each["permissions"] for job, each in CONTENT[name]["jobs"].items() if "permissions" in each
    }
    assert more == (
        {
            "attest": {"id-token": "write", "attestations": "write"},
            "publish": {"id-token": "write"},
            "page": {"contents": "write"},
        }
        if name == "release.yml"
        else {}
    )


def test_what_is_uploaded_was_built_checked_and_approved() -> None:
    jobs = CONTENT["release.yml"]["jobs"]
    assert jobs["publish"]["environment"]["name"] == "pypi"
    assert set(jobs["publish"]["needs"]) == {"build", "attest"}
    assert jobs["attest"]["needs"] == "build"
    (step,) = (each for each in jobs["build"]["steps"] if each.get("run") == "make release")
    assert step["env"] == {"RELEASE_TAG": "${{ github.ref_name }}"}
    # No code of the repository runs where something may be uploaded.
    for job in ("attest", "publish", "page"):
        assert not [each for each in jobs[job]["steps"] if "checkout" in each.get("uses", "")]


def test_each_word_of_make_exists() -> None:
    words = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    nightly = CONTENT["nightly.yml"]["jobs"]["make"]["strategy"]["matrix"]["word"]
    ran = {word for text in TEXTS.values() for word in re.findall(r"run: make ([a-z-]+)", text)}
    assert ran | set(nightly) <= words
    assert {"test-all", "witnesses", "mutants"} <= set(nightly)
