#!/usr/bin/env bash
# take_driver.sh FROM TO: copies the ODBC driver and what it needs at run time out of an installation.
# Runs while the client image is built, inside the image that the user has accepted the licence of. That may
# be a minimal one, without find: only cp and mkdir are needed.
set -euo pipefail
from=$1
to=$2

refuse() {
    echo "take_driver: $1" >&2
    exit 1
}

[ "${LICENSE:-}" = accept ] ||
    refuse "the driver is its vendor's: read the licence, then set LICENSE=accept (docker/README.md)."
[ -e "$from/lib/cli/libthcli.so" ] || [ -e "$from/lib/cli/iclit09b.so" ] ||
    refuse "no ODBC driver in this image: neither libthcli.so nor iclit09b.so is in $from/lib/cli. Set \
DRIVER_IMAGE in docker/.env to an image with a client SDK, or take IBM's Client SDK: docker/README.md says how."

# the driver, the libraries it is linked to, its locales, its messages and its settings
mkdir -p "$to/lib"
for part in lib/cli lib/esql gls msg etc; do
    [ ! -d "$from/$part" ] || cp -a "$from/$part" "$to/$part"
done
for library in "$from"/lib/*.so*; do
    [ ! -e "$library" ] || cp -a "$library" "$to/lib/"
done
