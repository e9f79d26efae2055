#!/bin/bash
# Run a command in a fresh Debian: debian.sh SUITE USER COMMAND   (root; USER is root or a user made there)
#
# The first call makes a minimal system of that suite (bookworm, trixie, forky) by debootstrap, with what the README asks
# for and nothing else, and keeps it in $TOCSIN_DEBIAN (/var/cache/tocsin-debian). Every call works on a new layer over it,
# so nothing a run does is seen by the next, with a clone of this repository's HEAD in ~/tocsin, in namespaces of its own:
# mounts and daemons end with the command. Packages come from where this machine gets its own.
set -euo pipefail
suite=$1 user=$2 command=$3
repository=$(cd "$(dirname "$0")/../.." && pwd)
base=${TOCSIN_DEBIAN:-/var/cache/tocsin-debian}
system=$base/$suite

[ "$(id -u)" = 0 ] || { echo "a Debian system is made and entered by root only" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "debootstrap not found; as root: apt-get install debootstrap" >&2; exit 1; }

make_system() {
    local mirror script=sid
    mirror=$(grep -rhoE '^(URIs:|deb( \[[^]]*\])?) *https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
        grep -oE 'https?://[^ ]+' | head -n 1 || true)
    [ -n "$mirror" ] || { echo "no Debian mirror in /etc/apt; add one to sources.list" >&2; exit 1; }
    [ -e "/usr/share/debootstrap/scripts/$suite" ] && script=$suite  # a suite may be newer than debootstrap
    echo "making a minimal Debian $suite in $system" >&2
    rm -rf "$system.part"
    debootstrap --variant=minbase --include=python3,python3-venv,make,git,ca-certificates \
        "$suite" "$system.part" "$mirror" "/usr/share/debootstrap/scripts/$script" \
        >"$base/$suite.log" 2>&1 || { tail -n 20 "$base/$suite.log" >&2; exit 1; }
    cp /etc/apt/apt.conf.d/* "$system.part/etc/apt/apt.conf.d/"
    useradd --root "$system.part" --create-home --shell /bin/bash newcomer
    mv "$system.part" "$system"
}

mkdir -p "$base"
[ -d "$system" ] || make_system

layer=$(mktemp -d "$base/$suite-run.XXXXXX")
trap 'rm -rf "$layer"' EXIT
root=$layer/root
mkdir "$layer/changes" "$layer/work" "$root"
home=/root
[ "$user" = root ] || home=/home/$user
export suite user command repository system layer root home

enter() {
    set -euo pipefail
    mount -t overlay overlay -o "lowerdir=$system,upperdir=$layer/changes,workdir=$layer/work" "$root"
    mount -t proc proc "$root/proc"
    for place in sys dev; do mount --rbind "/$place" "$root/$place"; done
    cp /etc/resolv.conf /etc/hosts "$root/etc/"
    cp -r /etc/ssl/certs/. "$root/etc/ssl/certs/"
    # The package index this machine's pip uses, as far as it lies on the network or in folders shown here too.
    python3 -m pip config list 2>/dev/null | sed -n "s/^[^=]*\.\([a-z-]*\)='\(.*\)'$/\1 = \2/p" | sort -u -t= -k1,1 |
        { echo '[global]'; cat; } >"$root/etc/pip.conf"
    grep -oE '(file://)?/[^ ]+' "$root/etc/pip.conf" | sed 's#^file://##' | while read -r folder; do
        folder=$(echo "$folder" | cut -d/ -f1-3)
        [ -d "$folder" ] && [ ! -e "$root$folder" ] || continue
        mkdir -p "$root$folder"
        mount --rbind -o ro "$folder" "$root$folder"
    done
    git -c safe.directory='*' clone -q --no-hardlinks "$repository" "$root$home/tocsin"
    chroot "$root" chown -R "$user:" "$home/tocsin"
    # Not by exec: this shell is the init of its namespace and reaps what others leave behind.
    chroot "$root" /usr/bin/env -i HOME="$home" USER="$user" LOGNAME="$user" LANG=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin ${CI:+CI="$CI"} \
        setpriv --reuid "$user" --regid "$user" --init-groups bash -c "cd ~/tocsin && $command"
}
export -f enter
unshare --mount --pid --fork --kill-child bash -c enter
