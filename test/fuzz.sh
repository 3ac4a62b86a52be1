#!/usr/bin/env bash
# Runs every fuzz target of the repository for FUZZTIME (default 20s) each.
set -euo pipefail
cd "$(dirname "$0")/.."
for file in $(git ls-files '*_test.go' | xargs grep -l '^func Fuzz'); do
    for target in $(grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | awk '{print $2}'); do
        echo "== $file $target"
        go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-20s}" -fuzzminimizetime 10x "./$(dirname "$file")"
    done
done
