#!/usr/bin/env bash
# take_driver.sh FROM TO: copies the ODBC driver and what it needs at run time out of an Informix installation.
# Runs while the client image is built, inside the server image that the user has accepted the licence of.
set -euo pipefail
from=$1
to=$2

refuse() {
    echo "take_driver: $1" >&2
    exit 1
}

[ "${LICENSE:-}" = accept ] ||
    refuse "the driver is IBM's: read the licence, then set LICENSE=accept (docker/README.md)."
[ -e "$from/lib/cli/libthcli.so" ] || [ -e "$from/lib/cli/iclit09b.so" ] ||
    refuse "no ODBC driver in this image: neither libthcli.so nor iclit09b.so is in $from/lib/cli. Take another \
image (build argument INFORMIX_IMAGE), or IBM's Client SDK: docker/README.md says how."

# the driver, the libraries it is linked to, its locales and its messages
mkdir -p "$to/lib"
for part in lib/cli lib/esql gls msg; do
    [ ! -d "$from/$part" ] || cp -a "$from/$part" "$to/$part"
done
find "$from/lib" -maxdepth 1 -name '*.so*' -exec cp -a {} "$to/lib/" ';'
