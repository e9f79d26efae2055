#!/bin/bash
# Build tocsin_VERSION_ARCH.deb and tocsin-agent_VERSION_all.deb.
# Usage: build-deb.sh FOLDER [agent | WHEELHOUSE [EXTRAS]]   (needs dpkg-deb; the whole package also python3-venv)
#
# tocsin: a virtual environment in /opt/tocsin, filled from the wheelhouse, on Debian's own Python; so it fits the release
# that it is built on. tocsin-agent: for compute nodes, a few files on any Python 3.11 or newer.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1 wheelhouse=${2:-dist/wheelhouse} extras=${3:-serve}
python=/usr/bin/python3
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' src/tocsin/__init__.py)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$folder"

common() {  # PACKAGE: what both packages have
    install -D -m 644 LICENSE "$stage/$1/usr/share/doc/$1/copyright"
    install -D -m 644 CHANGELOG.md "$stage/$1/usr/share/doc/$1/CHANGELOG.md"
    install -d "$stage/$1/DEBIAN"
    for script in packaging/debian/"$1".*; do
        [ -e "$script" ] && install -m 755 "$script" "$stage/$1/DEBIAN/${script##*.}"
    done
}

unit() {  # PACKAGE UNIT...
    local package=$1
    shift
    for name in "$@"; do
        install -D -m 644 "packaging/systemd/$name" "$stage/$package/usr/lib/systemd/system/$name"
    done
}

pack() {  # PACKAGE ARCHITECTURE: the fields of its control file, then the package
    local root=$stage/$1
    find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference -d "@$SOURCE_DATE_EPOCH" {} +
    {
        printf 'Package: %s\nVersion: %s\nArchitecture: %s\n' "$1" "$version" "$2"
        printf 'Installed-Size: %s\n' "$(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)"
        cat -
    } >"$root/DEBIAN/control"
    (cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    dpkg-deb --root-owner-group -Zzstd --build "$root" "$folder/$1_${version}_$2.deb"
}

agent() {
    local root=$stage/tocsin-agent code=$stage/tocsin-agent/usr/lib/tocsin-agent/tocsin
    common tocsin-agent
    install -d "$code/core"
    cp -r src/tocsin/__init__.py src/tocsin/agent "$code/"
    cp src/tocsin/core/__init__.py src/tocsin/core/channels.py "$code/core/"
    find "$code" -name __pycache__ -prune -exec rm -rf {} +
    install -D -m 755 packaging/debian/agent-command "$root/usr/bin/tocsin-agent"
    install -D -m 644 docs/node-agent.md "$root/usr/share/doc/tocsin-agent/node-agent.md"
    unit tocsin-agent tocsin-agent.service
    # What it imports must be in the package.
    (cd "$code/.." && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=. "$python" -S -c 'import tocsin.agent.main')
    pack tocsin-agent all <<END
Depends: python3 (>= 3.11)
Section: admin
Priority: optional
Maintainer: the tocsin developers <root@localhost>
Description: what each CPU of a compute node does, and for which Slurm job
 A Prometheus exporter for compute nodes, read by tocsin. It needs Python and nothing else.
END
}

whole() {
    local root=$stage/tocsin venv=$stage/tocsin/opt/tocsin minor next
    minor=$("$python" -c 'import sys; print(sys.version_info.minor)')
    next=3.$((minor + 1))
    common tocsin
    "$python" -m venv "$stage/build"
    "$python" -m venv --without-pip "$venv"
    "$stage/build/bin/python" -m pip -qq --disable-pip-version-check --python "$venv/bin/python" install --no-compile \
        --no-index --find-links "$wheelhouse" "tocsin[$extras]"
    # The commands of the libraries, and what names the folder it was built in.
    find "$venv/bin" -type f ! -name tocsin -delete
    sed -i "1s|^#!.*|#!/opt/tocsin/bin/python3|" "$venv/bin/tocsin"
    sed -i "s|$venv|/opt/tocsin|g" "$venv/pyvenv.cfg"
    find "$venv" -name direct_url.json -delete
    find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference -d "@$SOURCE_DATE_EPOCH" {} +
    # Compiled here: files that Python wrote later would stay behind when the package is removed.
    "$venv/bin/python3" -m compileall -qq -s "$root" -p / "$venv/lib" || true  # a library may ship a file for another Python

    install -d "$root/usr/bin" "$root/usr/share/doc/tocsin/examples"
    ln -s /opt/tocsin/bin/tocsin "$root/usr/bin/tocsin"
    run=("$venv/bin/python3" -B -c 'from tocsin.cli.main import run; run()')
    "${run[@]}" config example >"$root/usr/share/doc/tocsin/examples/tocsin.toml"
    "${run[@]}" manual "$root/usr/share/man/man1" 2>/dev/null
    gzip -9n "$root"/usr/share/man/man1/*
    install -d "$root/usr/share/bash-completion/completions"
    "${run[@]}" completion bash >"$root/usr/share/bash-completion/completions/tocsin"
    install -m 644 README.md docs/*.md "$root/usr/share/doc/tocsin/"
    unit tocsin tocsin.service tocsin-relay.service tocsin-expire.{service,timer} tocsin-nightly.{service,timer}
    install -D -m 644 packaging/sysusers.d/tocsin.conf "$root/usr/lib/sysusers.d/tocsin.conf"
    install -D -m 644 packaging/tmpfiles.d/tocsin.conf "$root/usr/lib/tmpfiles.d/tocsin.conf"
    pack tocsin "$(dpkg --print-architecture)" <<END
Depends: python3 (>= 3.$minor), python3 (<< $next), libgomp1, libc6, passwd
Recommends: curl
Suggests: slurm-client, postgresql
Section: admin
Priority: optional
Maintainer: the tocsin developers <root@localhost>
Description: early warning for HPC jobs
 Predicts which jobs will fail and suggests what to change, classifies what jobs run, and watches how running jobs
 use their CPUs. It runs next to a live Slurm and needs the rights of a Slurm Operator.
END
}

agent
[ "$wheelhouse" = agent ] || whole
