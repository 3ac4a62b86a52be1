#!/usr/bin/env bash
# The demo's verdict can be red: with the claim and the rule for unknown results switched off (a build for tests),
# suppliers act twice, the audit counts it, and the program ends with exit code 1.
# The relay and the undo are broken in the same way by the tests of internal/demo.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -tags ruleswitch -o "$work/journeyman" ./cmd/journeyman
code=0
JOURNEYMAN_RULE_OFF=1,19 "$work/journeyman" demo --fetch-postgres --json >"$work/out" 2>/dev/null || code=$?
repeated=$(grep -oE '"side_effects_repeated": *[0-9]+' "$work/out" | grep -oE '[0-9]+$' || echo none)
echo "deduplication off: exit code $code, side_effects_repeated $repeated"
[ "$code" = 1 ] && [ "$repeated" != none ] && [ "$repeated" -gt 0 ]
