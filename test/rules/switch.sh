#!/usr/bin/env bash
# Every rule of the effect path (1 to 28) has a test, and the test can fail:
# with all rules on, TestRuleNN is green; with rule NN switched off (build tag
# ruleswitch), it is red. Prints one line a rule, exits 1 when one is missing,
# red when it should be green, or green when it should be red.
set -uo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wanted=$(seq -w 1 28)
bad=0
declare -A where
for dir in $(git ls-files '*_test.go' | xargs grep -lE '^func TestRule[0-9]{2}' | xargs -n1 dirname | sort -u); do
    bin="$work/$(tr / - <<<"$dir").test"
    go test -c -race -tags ruleswitch -o "$bin" "./$dir" || { echo "build of $dir failed"; exit 1; }
    for n in $(cd "$dir" && "$bin" -test.list '^TestRule' | grep -oE '^TestRule[0-9]{2}' | grep -oE '[0-9]{2}' | sort -u); do
        where[$n]="${where[$n]:-} $dir"
    done
done
for n in $wanted; do
    [ -n "${where[$n]:-}" ] || { echo "rule $n: no test"; bad=1; continue; }
    red=0
    for dir in ${where[$n]}; do
        bin="$work/$(tr / - <<<"$dir").test"
        (cd "$dir" && "$bin" -test.run "^TestRule$n" -test.timeout 120s) >"$work/on" 2>&1 || { echo "rule $n: red in $dir although switched on"; tail -20 "$work/on"; bad=1; }
        (cd "$dir" && JOURNEYMAN_RULE_OFF=$((10#$n)) "$bin" -test.run "^TestRule$n" -test.timeout 120s) >"$work/off" 2>&1 || red=1
    done
    if [ $red = 1 ]; then echo "rule $n: ok (green on, red off) in${where[$n]}"; else echo "rule $n: its test stays green with the rule switched off, in${where[$n]}"; bad=1; fi
done
exit $bad
