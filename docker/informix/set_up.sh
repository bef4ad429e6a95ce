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
# The guide runs it from this folder, as user informix. It is the server's own: judged by what it leaves.
has_database syscdcv1 || (cd "$INFORMIXDIR/etc" && dbaccess sysadmin syscdcv1.sql) || has_database syscdcv1

# A database takes its locale from the connection that creates it; the scripts are in UTF-8.
export DB_LOCALE=en_US.utf8 CLIENT_LOCALE=en_US.utf8
has_database stores || run - database.sql
run stores tables.sql
finds stores 101 "SELECT customer_num FROM customers WHERE customer_num = 101" || run stores demo_data.sql
run stores workload.sql

bash "$here/health.sh"
echo "informix-cdc: ready"
