#!/usr/bin/env bash
# Runs once inside the container as user informix: the CDC database, and a logged database with a table.
set -eu
dbaccess sysadmin "$INFORMIXDIR/etc/syscdcv1.sql"
dbaccess - - <<'SQL'
CREATE DATABASE stores WITH LOG;
CREATE TABLE informix.orders (
    order_num SERIAL PRIMARY KEY,
    customer_num INTEGER,
    note VARCHAR(60),
    amount DECIMAL(10, 2)
);
SQL
