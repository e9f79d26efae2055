#!/bin/bash
# Install, use, upgrade, remove and purge the Debian packages in dist, in a system without systemd as init.
# Usage: try_deb.sh   (root, in a system that may be spoiled: debian.sh makes one; `make deb` builds the packages)
set -euo pipefail
cd "$(dirname "$0")/../.."
export DEBIAN_FRONTEND=noninteractive
as_tocsin=(setpriv --reuid tocsin --regid tocsin --init-groups --no-new-privs --bounding-set=-all env -C / HOME=/var/lib/tocsin)
schema() { /opt/tocsin/bin/python3 -c 'import sqlite3; print(sqlite3.connect("/var/lib/tocsin/tocsin.db").execute("SELECT version_num FROM tocsin_version").fetchone()[0])' 2>/dev/null; }
files() { find /etc /opt /usr /var /run -xdev ! -path '/var/lib/dpkg*' ! -path '/var/lib/apt*' ! -path '/var/cache/*' ! -path '/var/log/*' ! -path '/usr/lib/python3*' \
    ! -name 'passwd*' ! -name 'shadow*' ! -name 'group*' ! -name 'gshadow*' ! -name 'subuid*' ! -name 'subgid*' ! -name 'ld.so.cache' ! -name '.pwd.lock' | sort; }
step() { echo "== $*"; }

apt-get -qq update
apt-get -qq install --yes --no-install-recommends libgomp1 passwd >/dev/null
files >/tmp/before

step "install"
apt-get -qq install --yes --no-install-recommends ./dist/tocsin_*.deb ./dist/tocsin-agent_*.deb </dev/null
[ "$(stat -c '%U:%G %a' /var/lib/tocsin)" = "tocsin:tocsin 750" ]
[ "$(getent passwd tocsin | cut -d: -f6,7)" = /var/lib/tocsin:/usr/sbin/nologin ]
[ -e /etc/tocsin/tocsin.toml ] && [ ! -e /var/lib/tocsin/tocsin.db ]
if grep -lz '[/]opt/tocsin/bin' /proc/[0-9]*/cmdline 2>/dev/null; then echo "something was started" >&2; exit 1; fi  # [/]: not grep itself
tocsin --version
tocsin config check
zgrep -q 'Early warning' /usr/share/man/man1/tocsin.1.gz
tocsin-agent --help >/dev/null

step "use it as the service's user, without any capability"
"${as_tocsin[@]}" tocsin demo --days 3 --seed 1 >/dev/null
"${as_tocsin[@]}" tocsin serve --no-watch --for 600 &
service=$!
for _ in $(seq 300); do [ -S /run/tocsin/tocsin.sock ] && break; sleep 0.2; done
tocsin jobs -M demo -n >/tmp/jobs
[ -s /tmp/jobs ]
/opt/tocsin/bin/python3 -c 'import lightgbm, polars, confluent_kafka, paho.mqtt, psycopg, onnxruntime, vl_convert'
kill "$service"
wait "$service"

step "upgrade a store of an earlier version"
before=$(schema)
"${as_tocsin[@]}" /opt/tocsin/bin/python3 - <<'END'
import sqlite3
store = sqlite3.connect("/var/lib/tocsin/tocsin.db")  # the schema before the service learned
store.execute("DROP TABLE learning_runs")
store.execute("DROP TABLE challenger_scores")
store.execute("UPDATE tocsin_version SET version_num = '0006'")
store.commit()
END
[ "$(schema)" = 0006 ]
echo '# ours' >>/etc/tocsin/tocsin.toml
apt-get -qq install --yes --reinstall --allow-downgrades ./dist/tocsin_*.deb </dev/null
[ "$(schema)" = "$before" ]
[ "$(stat -c %U /var/lib/tocsin/tocsin.db)" = tocsin ]
grep -q '# ours' /etc/tocsin/tocsin.toml

step "remove: the program goes, data and settings stay"
apt-get -qq remove --yes tocsin tocsin-agent </dev/null
[ ! -e /opt/tocsin ] && [ ! -e /usr/bin/tocsin ] && [ ! -e /usr/lib/tocsin-agent ]
[ -e /var/lib/tocsin/tocsin.db ] && [ -e /etc/tocsin/tocsin.toml ]

step "purge: nothing is left"
dpkg --purge tocsin tocsin-agent  # apt no longer knows the agent, which leaves nothing behind
files >/tmp/after
diff /tmp/before /tmp/after
step "all steps passed"
