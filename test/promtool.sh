#!/usr/bin/env bash
# Runs the alert rules through Prometheus' own promtool. Takes the one on the PATH, else unpacks Debian's into the cache folder.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${JOURNEYMAN_CACHE:-/var/tmp/journeyman-cache}/promtool
tool=$(command -v promtool || true)
if [ -z "$tool" ]; then
    tool=$cache/usr/bin/promtool
    if [ ! -x "$tool" ]; then
        command -v apt-get >/dev/null 2>&1 || { echo "promtool is needed: install Prometheus or put promtool on the PATH" >&2; exit 1; }
        echo "unpacking promtool of Debian's package prometheus into $cache (once)"
        new=$cache.$$
        mkdir -p "$new"
        [ "$(id -u)" = 0 ] && apt-get update -qq
        (cd "$new" && apt-get download -qq prometheus && dpkg -x prometheus_*.deb . && rm prometheus_*.deb)
        mkdir -p "$cache"
        cp -a "$new/." "$cache/"
        rm -rf "$new"
    fi
fi
PROMTOOL=$tool go test -count=1 -tags promtool ./deploy/alerts
