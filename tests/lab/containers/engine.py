"""A Docker engine: the one that runs here, or one that is started for this run, as root on Debian.

Rule: what is installed or started is said first; what was started is stopped, and its folder removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDER_VARIABLE = "INFORMIX_CDC_ENGINE_FOLDER"
FOLDER = Path(os.environ.get(FOLDER_VARIABLE, ROOT / "build/containers"))
_PACKAGES = {"dockerd": "docker.io", "docker": "docker.io", "debootstrap": "debootstrap"}
_START_SECONDS = 60
_STOP_SECONDS = 30
_SHOWN_LINES = 15
_BRIDGE = Path("/sys/class/net/docker0")  # which an engine leaves behind


class NotHere(Exception):
    """What this machine does not have or may not do; one sentence."""


class Failed(Exception):
    """A command that failed, with the end of its output."""


@dataclass(frozen=True)
class Engine:
    """An engine, and the client that talks to it.

    Attributes:
        about: version, storage and who started it, for the table.
        variables: what clients of it need in their environment.
    """

    about: str
    variables: Mapping[str, str] = field(default_factory=dict)

    def docker(self, *words: str | Path, seconds: float = 600) -> str:
        """Run a command of the client; return what it prints on both streams.

        Raises:
            Failed: its exit code is not 0.
        """
        return output_of("docker", *words, variables=self.variables, seconds=seconds)

    def popen(self, *words: str | Path) -> subprocess.Popen[str]:
        """Start a command of the client, with one pipe for both streams."""
        pipe, errors = subprocess.PIPE, subprocess.STDOUT
        environment = os.environ | dict(self.variables)
        return subprocess.Popen(
            ["docker", *map(str, words)], stdout=pipe, stderr=errors, text=True, env=environment
        )


def output_of(
    *words: str | Path, variables: Mapping[str, str] | None = None, seconds: float = 600
) -> str:
    """Run a command; return what it prints on both streams.

    Raises:
        Failed: its exit code is not 0, or it takes too long.
    """
    environment = os.environ | dict(variables or {})
    pipe, errors = subprocess.PIPE, subprocess.STDOUT
    command = [str(word) for word in words]
    try:
        done = subprocess.run(
            command,
            stdout=pipe,
            stderr=errors,
            text=True,
            env=environment,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise Failed(
            f"{' '.join(command)}: not done after {seconds:.0f} s\n{late.output or ''}"
        ) from None
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-_SHOWN_LINES:])
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}\n{last}")
    return done.stdout


@contextlib.contextmanager
def engine(say: Callable[[str], None]) -> Iterator[Engine]:
    """Yield the engine that runs here, else one that is started now.

    Raises:
        NotHere: none runs, and none can be started; with the reason.
    """
    try:
        running = Engine(f"{_about({})}, was running")
    except (Failed, FileNotFoundError):
        _require_root_on_debian()
    else:
        yield running
        return
    _install(say)
    with _started(say) as variables:
        yield Engine(f"{_about(variables)}, started for this run", variables)


def _about(variables: Mapping[str, str]) -> str:
    words = "{{.ServerVersion}}, storage {{.Driver}}, cgroup v{{.CgroupVersion}}"
    return "Docker " + output_of("docker", "info", "--format", words, variables=variables).strip()


def _require_root_on_debian() -> None:
    is_root = os.geteuid() == 0
    if not is_root or not Path("/etc/debian_version").exists() or shutil.which("apt-get") is None:
        raise NotHere(
            "no Docker engine runs here. Start one, or run this as root on Debian: there it installs"
            " docker.io and debootstrap and starts an engine of its own."
        )


def _install(say: Callable[[str], None]) -> None:
    wanted = sorted({name for program, name in _PACKAGES.items() if shutil.which(program) is None})
    if not wanted:
        return
    say(f"Installing {' and '.join(wanted)} with apt-get; these stay installed ...")
    # Otherwise the package starts an engine of its own, with networks that may not be allowed here.
    variables = {"RUNLEVEL": "1", "DEBIAN_FRONTEND": "noninteractive"}
    output_of("apt-get", "update", "-qq", variables=variables)
    output_of(
        "apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted, variables=variables
    )


@contextlib.contextmanager
def _started(say: Callable[[str], None]) -> Iterator[Mapping[str, str]]:
    """Start an engine whose files are all in one folder, and that changes no rule of the firewall."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    address = f"unix://{FOLDER}/docker.sock"
    words = ["dockerd", f"--host={address}", f"--data-root={FOLDER}/data", f"--exec-root={FOLDER}/exec"]
    words += [f"--pidfile={FOLDER}/pid", "--iptables=false", "--ip6tables=false", "--ip-masq=false"]
    words += ["--exec-opt=native.cgroupdriver=cgroupfs"]
    say(f"Starting a Docker engine in {FOLDER}; it is stopped at the end ...")
    variables = {"DOCKER_HOST": address}
    had_bridge = _BRIDGE.exists()
    with (FOLDER / "dockerd.log").open("w") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        _wait(process, variables)
        yield variables
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
        process.kill()
        _tidy(had_bridge=had_bridge)


def _tidy(*, had_bridge: bool) -> None:
    """Release what an engine leaves behind: mounts in its folder, and its network."""
    places = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in places:
        if place.startswith(f"{FOLDER}/"):
            output_of("umount", place)
    if _BRIDGE.exists() and not had_bridge and shutil.which("ip"):
        output_of("ip", "link", "delete", _BRIDGE.name)


def _wait(process: subprocess.Popen[bytes], variables: Mapping[str, str]) -> None:
    until = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(Failed):
            output_of("docker", "version", variables=variables)
            return
        time.sleep(0.5)
    last = "\n".join((FOLDER / "dockerd.log").read_text().splitlines()[-_SHOWN_LINES:])
    raise NotHere(f"the Docker engine does not start:\n{last}")
