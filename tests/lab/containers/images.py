"""Images of a run: a Debian of debootstrap's, the client's on it, and one in place of the server's."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from lab.containers.engine import FOLDER, ROOT, Engine, NotHere, output_of

BASE = "informix-cdc-base:local"
CLIENT = "informix-cdc-client:local"  # the name in docker/compose.yaml
SERVER = "informix-cdc-emulator:local"
RELEASE = "bookworm"  # that of the Dockerfile's own base
MIRROR = "http://deb.debian.org/debian"
_AUTHORITIES = Path("/usr/local/share/ca-certificates")
# Without BuildKit, which not every engine has: it makes all stages up to the target, and no later one.
_BUILD = {"DOCKER_BUILDKIT": "0"}
_SERVER = f"""\
FROM {CLIENT}
USER 0
COPY emulated_server.sh dbaccess /usr/local/bin/
RUN chmod +x /usr/local/bin/emulated_server.sh /usr/local/bin/dbaccess
USER 1000:1000
ENV INFORMIXDIR=/tmp
CMD ["emulated_server.sh"]
"""
# The log line that tests wait for (lab.live.container) comes once the port answers.
_START = r"""#!/usr/bin/env bash
set -euo pipefail
informix-cdc emulator --host 0.0.0.0 --port 9088 --demo-workload 20 &
until (: </dev/tcp/127.0.0.1/9088) 2>/dev/null; do sleep 0.2; done
echo "$(date +%T) SCHAPI: Started 2 dbWorker threads."
wait
"""
# What docker/informix/health.sh asks for is there, but for the procedure that the emulator cannot have.
_DBACCESS = """#!/usr/bin/env bash
printf '%s\\n' sbspace syscdcv1 stores 101 shop_order
"""


def make_base(engine: Engine, say: Callable[[str], None]) -> str:
    """Make a minimal Debian for the Dockerfile's argument BASE; return how large it is.

    The machine's own certificate authorities go with it: behind a proxy that signs, pip needs them.
    """
    if shutil.which("debootstrap") is None:
        raise NotHere("no debootstrap is here, which makes the base image; install it.")
    root = FOLDER / "debian"
    shutil.rmtree(root, ignore_errors=True)
    say(f"Making a Debian ({RELEASE}) with debootstrap: about two minutes ...")
    output_of("debootstrap", "--variant=minbase", "--include=ca-certificates", RELEASE, root, MIRROR)
    (root / "etc/apt/sources.list").write_text(_sources())
    if any(_AUTHORITIES.glob("*.crt")):
        for each in _AUTHORITIES.glob("*.crt"):
            shutil.copy(each, root / "usr/local/share/ca-certificates")
        output_of("chroot", root, "update-ca-certificates")
        (root / "etc/pip.conf").write_text("[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n")
    shutil.rmtree(root / "var/cache/apt/archives", ignore_errors=True)
    archive = FOLDER / "debian.tar"
    output_of("tar", "--create", "--numeric-owner", "--file", archive, "--directory", root, ".")
    engine.docker("import", "--change", 'CMD ["bash"]', archive, BASE)
    shutil.rmtree(root)
    archive.unlink()
    return _size(engine, BASE)


def _sources() -> str:
    security = MIRROR.replace("/debian", "/debian-security")
    return (
        f"deb {MIRROR} {RELEASE} main\ndeb {MIRROR} {RELEASE}-updates main\n"
        f"deb {security} {RELEASE}-security main\n"
    )


def build_client(engine: Engine, say: Callable[[str], None]) -> str:
    """Build the client's image as docker/README.md does, on that base; return how large it is."""
    say("Building the client's image: Java, Python, Spark and this package, some minutes ...")
    words = [
        "build",
        "--network=host",
        "--target=client",
        f"--build-arg=BASE={BASE}",
        f"--tag={CLIENT}",
    ]
    words += ["--file", str(ROOT / "docker/client/Dockerfile"), str(ROOT)]
    with_variables = Engine(engine.about, {**engine.variables, **_BUILD})
    with_variables.docker(*words, seconds=1800)
    return _size(engine, CLIENT)


def build_server(engine: Engine) -> str:
    """Build an image that poses as the server's: the emulator, and a dbaccess that finds everything."""
    folder = FOLDER / "server"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Dockerfile").write_text(_SERVER)
    (folder / "emulated_server.sh").write_text(_START)
    (folder / "dbaccess").write_text(_DBACCESS)
    with_variables = Engine(engine.about, {**engine.variables, **_BUILD})
    with_variables.docker("build", "--network=host", f"--tag={SERVER}", folder)
    return _size(engine, SERVER)


def _size(engine: Engine, image: str) -> str:
    size = int(engine.docker("image", "inspect", "--format", "{{.Size}}", image))
    return f"{size / 1e6:,.0f} MB"
