// Evaluates the expressions of standard input, one a line, with feelin and
// prints one JSON line for each: {"value": ...} or {"syntax": message}.
import { evaluate, SyntaxError, isFunction, isRange } from 'feelin'
import fs from 'node:fs'

const context = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'))

// tagged tells values apart that JSON cannot: temporal ones are text there.
function tagged(v) {
  if (v === undefined) return { undefined: true }
  if (v === null || typeof v !== 'object' && typeof v !== 'function') return Number.isNaN(v) || v === Infinity || v === -Infinity ? { number: String(v) } : v
  if (Array.isArray(v)) return v.map(tagged)
  if (isFunction(v)) return { function: true }
  if (isRange(v)) return { range: true }
  if (typeof v.iso === 'string') return v.iso
  return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, tagged(x)]))
}

for (const line of fs.readFileSync(0, 'utf8').split('\n')) {
  if (line === '') continue
  let out
  try {
    out = { value: tagged(evaluate(JSON.parse(line), structuredClone(context)).value) }
  } catch (e) {
    out = e instanceof SyntaxError ? { syntax: e.message } : { failed: String(e) }
  }
  process.stdout.write(JSON.stringify(out) + '\n')
}
