#!/usr/bin/env bash
# Runs the demo as a newcomer would and checks its summary, read from JSON: the exit code is the demo's own
# verdict, the fields below are checked again so that a demo that forgot to check cannot pass.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT
./bin/journeyman demo --fetch-postgres --json >"$out" || { code=$?; cat "$out"; echo "demo ended with exit code $code"; exit 1; }
cat "$out"
number() { grep -oE "\"$1\": *-?[0-9.]+" "$out" | head -1 | grep -oE -- '-?[0-9.]+$'; }
bad=0
for field in side_effects_repeated orphans_open events_lost events_phantom order_violations stuck; do
    [ "$(number $field)" = 0 ] || { echo "$field is $(number $field), want 0"; bad=1; }
done
for field in bookings confirmed compensated cancelled expired refunds jobs worker_kills kill_points_hit duplicates_delivered side_effects events_committed events_in_kafka; do
    awk -v v="$(number $field)" 'BEGIN { exit !(v > 0) }' || { echo "$field is $(number $field), want more than 0"; bad=1; }
done
awk -v v="$(number orphans_made)" 'BEGIN { exit !(v >= 2) }' || { echo "orphans_made is $(number orphans_made), want 2 or more"; bad=1; }
exit $bad
