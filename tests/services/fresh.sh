#!/bin/bash
# make fresh: `make run` and `make test` in new Debian systems, as an ordinary user and as root, and the Debian packages
# built, installed, upgraded and removed there; a table at the end.
# Usage: fresh.sh [SUITE...]   (root; FRESH_USERS and FRESH_TARGETS choose less)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
logs=${TOCSIN_DEBIAN:-/var/cache/tocsin-debian}/logs
mkdir -p "$logs"
table=$(printf '%-10s %-9s %-5s %-7s %7s  %s\n' Debian user make result seconds "last line")
failed=0
for suite in ${*:-bookworm forky}; do
    for user in ${FRESH_USERS:-newcomer root}; do
        for target in ${FRESH_TARGETS:-run test deb}; do
            [ "$target" = deb ] && [ "$user" != root ] && continue
            log=$logs/$suite-$user-$target.log
            command="make $target"
            [ "$target" = run ] && command+=" ARGS='--for 60'"  # the demonstration has no end of its own
            [ "$target" = deb ] && command+=" && bash tests/services/try_deb.sh"
            echo "$command in Debian $suite as $user; log: $log"
            start=$SECONDS
            if "$here/debian.sh" "$suite" "$user" "$command" >"$log" 2>&1; then
                result=ok
            else
                result=FAILED failed=1
            fi
            table+=$'\n'$(printf '%-10s %-9s %-5s %-7s %7d  %s' "$suite" "$user" "$target" "$result" \
                $((SECONDS - start)) "$(grep -v '^$' "$log" | tail -n 1 | tr -d '=' | cut -c 1-90)")
        done
    done
done
echo
echo "$table"
exit $failed
