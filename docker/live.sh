#!/usr/bin/env bash
# live.sh STEP [ARGUMENT]: proves this project on a server of the developer image; .github/workflows/live.yml
# runs the steps in this order. They run on any machine with a Docker engine. Not yet run against the image.
#
#   start TAG                  pulls the image, starts the server and sets change data capture up
#   prove TRANSPORT REPORT     informix-cdc prove
#   tests TRANSPORT RESULTS    the live tests, as JUnit XML
#   kit image|nuget            an ODBC client: of the 12.10 image, or of HCL's package Informix.Net.Core-lnx
#   logs                       prints the log of the container and of the server
#
# The server is that of LICENSE=accept: whoever runs this has read IBM's licence of the developer edition, and
# for `kit nuget` HCL's licence of its package.
set -euo pipefail

image=icr.io/informix/informix-developer-database
container=informix-cdc-live
port=${INFORMIX_PORT:-9088}
work=${LIVE_FOLDER:-build/live}
export INFORMIX_CDC_PASSWORD=${INFORMIX_CDC_PASSWORD:-in4mix} # the image's documented login of user informix

refuse() {
    echo "live: $1" >&2
    exit 1
}

accepted() {
    [ "${LICENSE:-}" = accept ] || refuse "the developer edition and its client are their vendors': read the \
licence (docker/README.md says where), then set LICENSE=accept."
}

pull() {
    for seconds in 20 60 0; do
        docker pull "$1" && return
        sleep "$seconds"
    done
    refuse "the image $1 cannot be pulled."
}

in_server() { docker exec "$container" bash -lc "$1"; }

# within TRIES WHAT COMMAND: waits until a command in the server succeeds
within() {
    for _ in $(seq "$1"); do
        if in_server "$3" >/dev/null 2>&1; then return; fi
        sleep 10
    done
    docker logs "$container" >&2 || true
    refuse "$2"
}

# SIZE=large, as Debezium's tests run it: the ten small logs of SIZE=small wrap during the longer tests.
start() {
    accepted
    pull "$image:$1"
    docker run --detach --tty --name "$container" --hostname informix --privileged \
        --publish "127.0.0.1:$port:9088" --publish 127.0.0.1:9089:9089 \
        --env LICENSE --env SIZE=large "$image:$1"
    within 60 "the server is not On-Line after ten minutes." "onstat - | grep -q On-Line"
    # sysmaster is built behind that line: the script is tried until it has left the database
    within 30 "syscdcv1 cannot be made." "cd \$INFORMIXDIR/etc; dbaccess - syscdcv1.sql >/dev/null 2>&1; \
echo \"SELECT name FROM sysdatabases WHERE name = 'syscdcv1'\" | dbaccess sysmaster | grep -w syscdcv1"
}

prove() {
    with_kit "$1"
    informix-cdc prove --transport "$1" --host 127.0.0.1 --port "$port" --server informix \
        --database ifx_proof --report "$2"
}

tests() {
    with_kit "$1"
    local named='live and not live-sqli'
    [ "$1" = odbc ] || named=live-sqli
    INFORMIX_CDC_TEST_DSN="HOST=127.0.0.1;SERVICE=$port;SERVER=informix;UID=informix;PWD=$INFORMIX_CDC_PASSWORD" \
        python -m pytest -m informix -k "$named" -rs --junitxml "$2"
}

# The client must be known before the process starts: its libraries find each other by LD_LIBRARY_PATH.
with_kit() {
    [ "$1" = odbc ] || return 0
    [ -d "$work/kit" ] || refuse "no ODBC client: run the step kit first."
    INFORMIXDIR=$(cd "$work/kit" && pwd)
    export INFORMIXDIR LD_LIBRARY_PATH="$INFORMIXDIR/lib:$INFORMIXDIR/lib/cli:$INFORMIXDIR/lib/esql"
}

kit() {
    accepted
    mkdir -p "$work"
    case "$1" in
    image)
        local made
        pull "$image:12.10.FC12W1DE"
        made=$(docker create "$image:12.10.FC12W1DE")
        docker cp "$made:/opt/ibm/informix" "$work/installation"
        docker rm "$made"
        bash docker/client/take_driver.sh "$work/installation" "$work/kit"
        ;;
    nuget)
        local found
        dotnet new classlib --output "$work/project"
        dotnet add "$work/project" package Informix.Net.Core-lnx --version 4.1501.2.2026 \
            --package-directory "$work/packages"
        found=$(find "$work/packages" -name 'libthcli*.so' | sort | head -n 1)
        [ -n "$found" ] || refuse "the package has no libthcli*.so."
        cp -a "$(dirname "$found")/.." "$work/kit"
        ;;
    *) refuse "a kit comes from image or nuget, not from '$1'." ;;
    esac
}

logs() {
    docker logs "$container" 2>&1
    in_server "onstat -m"
}

case "${1:-}" in
start | prove | tests | kit | logs) "$@" ;;
*) refuse "a step is start, prove, tests, kit or logs." ;;
esac
