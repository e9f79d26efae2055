#!/bin/bash
# Install the Debian packages that the test services lack; say in a line what will be skipped where that cannot be done.
# Usage: install.sh PYTHON   (any Python ≥ 3.11, to ask tests.services what is missing)
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:-python3}
# make lends the programs that it starts a copy of libgomp; what the tests start as other users does not get it.
if [ "$(id -u)" = 0 ]; then unset LD_LIBRARY_PATH; fi

packages=$("$python" -m tests.services)
if [ -z "$packages" ]; then
    "$python" -m tests.services why   # nothing to install, but perhaps not root
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    "$python" -m tests.services why
    exit 0
fi

echo "installing for the tests:" $packages
log=$(mktemp)
policy=/usr/sbin/policy-rc.d
made_policy=
tidy() {
    rm -f "$log"
    if [ -n "$made_policy" ]; then rm -f "$policy"; fi
}
trap tidy EXIT
# The packages' own scripts must not start a system-wide Slurm or PostgreSQL: the tests start private ones.
if [ ! -e "$policy" ]; then
    made_policy=yes
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt() {
    apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null >"$log" 2>&1 && return
    tail -n 20 "$log" >&2
    echo "apt-get $* failed (above); check the machine's package sources and try again" >&2
    exit 1
}
apt update
apt install --yes --no-install-recommends $packages

packages=$("$python" -m tests.services)
if [ -n "$packages" ]; then
    echo "still missing after the installation:" $packages >&2
    exit 1
fi
