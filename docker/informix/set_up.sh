#!/usr/bin/env bash
# Prepares a server for capture: an sbspace, the CDC database, and the logged database stores with demo data.
# Runs as user informix inside the server's container. What is there already is left as it is.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=docker/informix/server.sh
. "$here/server.sh"

# -a: dbaccess stops at the first error, instead of going on with the next statement
run() {
    echo "informix-cdc: $2"
    dbaccess "$1" "$here/$2" -a
}

has_space || run sysadmin sbspace.sql
# The guide has user informix run it from this folder. Without a locale, as Debezium's images run it: captures
# connect to the captured database, so that of syscdcv1 does not matter. It is the server's own: judged by
# what it leaves.
has_database syscdcv1 || (cd "$INFORMIXDIR/etc" && dbaccess - syscdcv1.sql) || has_database syscdcv1

has_database stores || in_utf8 run - database.sql
in_utf8 run stores tables.sql
has_customers || in_utf8 run stores demo_data.sql
in_utf8 run stores workload.sql

bash "$here/health.sh"
echo "informix-cdc: ready"
