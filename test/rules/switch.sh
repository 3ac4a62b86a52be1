#!/usr/bin/env bash
# Every rule of the effect path (1 to 28) has a test, and the test can fail:
# with all rules on, TestRuleNN is green; with rule NN switched off (build tag
# ruleswitch), it is red. Prints one line a rule, exits 1 when one is missing,
# red when it should be green, or green when it should be red.
# Red tests mostly wait for what does not come, so JOBS (default 4) run at once.
set -uo pipefail
cd "$(dirname "$0")/../.."
root=$PWD

# one RULE WORK DIR… judges one rule: all its tests with the rule on, then with it off.
one() {
    local n=$1 work=$2 red=0 bad=0 dir bin
    shift 2
    for dir in "$@"; do
        bin="$work/$(tr / - <<<"$dir").test"
        cd "$root/$dir" || return 1
        "$bin" -test.run "^TestRule$n" -test.timeout 180s >"$work/on-$n" 2>&1 || { echo "rule $n: red in $dir although switched on"; tail -20 "$work/on-$n"; bad=1; }
        JOURNEYMAN_RULE_OFF=$((10#$n)) "$bin" -test.run "^TestRule$n" -test.timeout 180s >"$work/off-$n" 2>&1 || red=1
    done
    if [ $red = 1 ]; then echo "rule $n: green on, red off, in $*"; else echo "rule $n: its test stays green with the rule switched off, in $*"; bad=1; fi
    return $bad
}
if [ "${1:-}" = one ]; then
    shift
    one "$@"
    exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
declare -A where
for dir in $(git ls-files '*_test.go' | xargs grep -lE '^func TestRule[0-9]{2}' | xargs -n1 dirname | sort -u); do
    bin="$work/$(tr / - <<<"$dir").test"
    go test -c -race -tags ruleswitch -o "$bin" "./$dir" || { echo "build of $dir failed"; exit 1; }
    for n in $(cd "$dir" && "$bin" -test.list '^TestRule' | grep -oE '^TestRule[0-9]{2}' | grep -oE '[0-9]{2}' | sort -u); do
        where[$n]="${where[$n]:-} $dir"
    done
done
bad=0
for n in $(seq -w 1 28); do
    if [ -n "${where[$n]:-}" ]; then echo "$n $work${where[$n]}"; else echo "rule $n: no test" >&2; touch "$work/missing"; fi
done | xargs -P "${JOBS:-4}" -L 1 "$0" one || bad=1
[ ! -e "$work/missing" ] || bad=1
exit $bad
