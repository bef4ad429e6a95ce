# shellcheck shell=bash
# What set_up.sh and health.sh share: the server's environment, and a question to it.

if [ -z "${INFORMIXDIR:-}" ]; then
    set +u # the file builds on LD_LIBRARY_PATH, which need not be set
    # shellcheck source=/dev/null
    . /usr/local/bin/informix_inf.env
    set -u
fi

# A database takes its locale from the connection that creates it, and may refuse connections of another one
# (error -23197). The system databases have the default, ours UTF-8.
in_utf8() { DB_LOCALE=en_US.utf8 CLIENT_LOCALE=en_US.utf8 "$@"; }

# finds DATABASE WORD QUERY: whether the query's answer has the word
finds() {
    dbaccess "$1" - <<<"$3" 2>/dev/null | grep -w -- "$2" >/dev/null
}

has_space() { finds sysmaster sbspace "SELECT name FROM sysdbspaces WHERE name = 'sbspace'"; }
has_database() { finds sysmaster "$1" "SELECT name FROM sysdatabases WHERE name = '$1'"; }
has_customers() { in_utf8 finds stores 101 "SELECT customer_num FROM customers WHERE customer_num = 101"; }
has_workload() { in_utf8 finds stores shop_order "SELECT procname FROM sysprocedures WHERE procname = 'shop_order'"; }
