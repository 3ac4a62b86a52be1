#!/usr/bin/env bash
# Makes sure that PostgreSQL's server programs are here; installs Debian's package when it may, else says how.
set -euo pipefail
[ -n "${JOURNEYMAN_TEST_DSN:-}" ] && exit 0
command -v initdb >/dev/null 2>&1 && exit 0
ls /usr/lib/postgresql/*/bin/initdb /opt/homebrew/opt/postgresql*/bin/initdb >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing Debian's package postgresql (needed by the tests)"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null
    exit 0
fi
cat >&2 <<'T'
The tests need PostgreSQL's server programs (initdb, postgres). One of:
  apt-get install postgresql          (Debian, Ubuntu)
  brew install postgresql             (macOS)
  export JOURNEYMAN_TEST_DSN="host=… user=postgres"   (a server of yours, superuser)
T
exit 1
