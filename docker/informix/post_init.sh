# shellcheck shell=bash
# Runs once, after the server's disk was initialised (RUN_FILE_POST_INIT). The image's start script sources
# this file (informix/informix-server-dockerfiles, informix_entry.sh): a shell option set here would be set
# there, and an exit would end the server. So the work is done by a process of its own.
bash /informix-cdc/set_up.sh ||
    echo "informix-cdc: the set-up failed. When you have mended what it says: bash /informix-cdc/set_up.sh" >&2
