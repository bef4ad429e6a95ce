#!/usr/bin/env bash
# Whether the server answers and everything that set_up.sh makes is there; says what is missing.
set -euo pipefail
# shellcheck source=docker/informix/server.sh
. "$(dirname "$0")/server.sh"

missing() {
    echo "informix-cdc: $1 is not there (yet)" >&2
    exit 1
}

has_space || missing "the server, or its sbspace,"
has_database syscdcv1 || missing "the database syscdcv1"
has_database stores || missing "the database stores"
has_workload || missing "the procedure shop_order"
