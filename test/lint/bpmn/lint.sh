#!/bin/sh
# Lints the models in bpmn/models with the public Camunda rules for the lowest and the
# highest supported version, and with our own rules; checks that each diagram is what its
# table gives, and that our rules find models that are broken on purpose. Prints every finding, exits 1 when there is one.
#
# The packages are installed into a cache folder outside the repository:
# $JOURNEYMAN_CACHE/bpmn-lint, default ~/.cache/journeyman/bpmn-lint. A folder that
# holds this lockfile already is used as it is, without a network.
#
#   lint.sh [--layout]     --layout rewrites the diagrams from their tables first
set -eu

here=$(cd "$(dirname "$0")" && pwd)
models=$(cd "$here/../../../bpmn/models" && pwd)
cache=${JOURNEYMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/journeyman}/bpmn-lint

command -v npm >/dev/null || { echo "bpmn lint needs Node.js 20.12 or later with npm" >&2; exit 1; }
mkdir -p "$cache"
if ! cmp -s "$here/package-lock.json" "$cache/installed.json"; then
	cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$cache/"
	(cd "$cache" && npm ci --loglevel=error --no-progress >/dev/null) || {
		echo "bpmn lint: the packages of $here/package-lock.json could not be installed into $cache" >&2
		exit 1
	}
	cp "$here/package-lock.json" "$cache/installed.json"
fi
# The rule files change without the lockfile, so they are copied each time.
rm -rf "$cache/node_modules/bpmnlint-plugin-journeyman"
cp -R "$here/lint-rules" "$cache/node_modules/bpmnlint-plugin-journeyman"
cp "$here"/bpmnlintrc-*.json "$cache/"

NODE_MODULES_DIR=$cache
export NODE_MODULES_DIR
failed=0
for model in "$models"/*.bpmn; do
	table=$here/layout/$(basename "$model" .bpmn).json
	if [ "${1:-}" = --layout ]; then
		node "$here/layout.mjs" "$model" "$table" || failed=1
	fi
	node "$here/layout.mjs" --check "$model" "$table" || failed=1
done
cd "$cache"
for rc in bpmnlintrc-*.json; do
	version=${rc#bpmnlintrc-}
	if node_modules/.bin/bpmnlint --max-warnings 0 -c "$rc" "$models"/*.bpmn; then
		echo "bpmn lint ${version%.json}: 0 problems"
	else
		failed=1
	fi
done
node "$here/mutants.mjs" "$models/tour-booking.bpmn" || failed=1
exit $failed
