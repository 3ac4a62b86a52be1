// Runs the cases of cases.mjs over one client and prints one JSON line per case.
// The Go test reads the lines; nothing else may go to standard output.
import assert from 'node:assert/strict'
import { cases } from './cases.mjs'

export const grpc = need('ENGINE_GRPC')
export const rest = need('ENGINE_REST')
export const models = need('ENGINE_MODELS')

function need(name) {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set: run the Go test TestClients`)
  return value
}

// call speaks to the engine without any client, to see what a client did.
async function call(method, path, body) {
  const res = await fetch(`http://${rest}/v2${path}`, {
    method, headers: { 'content-type': 'application/json' }, body: body && JSON.stringify(body),
  })
  const text = await res.text()
  assert.ok(res.ok, `${method} ${path}: ${res.status} ${text}`)
  return text ? JSON.parse(text) : undefined
}

const find = async (what, filter) => (await call('POST', `/${what}/search`, { filter })).items

// eye is what the cases look with.
const eye = {
  advance: (milliseconds) => call('POST', '/clock/advance', { milliseconds }),
  state: async (instance) => (await call('GET', `/process-instances/${instance}`)).state,
  variables: async (instance) => Object.fromEntries((await find('variables', { processInstanceKey: instance }))
    .map((v) => [v.name, JSON.parse(v.value)])),
  incidents: (instance) => find('incidents', { processInstanceKey: instance, state: 'ACTIVE' }),
  elements: (filter) => find('element-instances', filter),
  userTasks: (filter) => find('user-tasks', filter),
  // until waits for what happens in another process, as a worker's completion.
  async until(what, fn) {
    const deadline = Date.now() + 20_000
    for (;;) {
      if (await fn()) return
      if (Date.now() > deadline) throw new Error(`20 s passed waiting until ${what}`)
      await new Promise((r) => setTimeout(r, 20))
    }
  },
}

// run plays every case. A client names what it cannot do in `cannot`: case to reason.
export async function run(client) {
  const failures = process.exitCode
  for (const [name, play] of Object.entries(cases)) {
    const started = performance.now()
    const line = { case: name }
    if (client.cannot?.[name]) {
      line.cannot = client.cannot[name]
    } else {
      try {
        await within(60_000, play(client, eye))
      } catch (e) {
        line.error = [e?.issues ?? [], e?.stack ?? e].flat().join("\n").slice(0, 3000)
      }
    }
    line.ms = Math.round(performance.now() - started)
    process.stdout.write(JSON.stringify(line) + '\n')
  }
  await client.close?.()
  process.exit(failures ?? 0)
}

function within(ms, promise) {
  let timer
  const late = new Promise((_, no) => { timer = setTimeout(() => no(new Error(`no end after ${ms} ms`)), ms) })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

// status turns the codes of gRPC and of HTTP into one name.
export function grpcStatus(e) {
  return { 3: 'INVALID_ARGUMENT', 5: 'NOT_FOUND', 6: 'ALREADY_EXISTS', 9: 'INVALID_STATE', 4: 'DEADLINE_EXCEEDED', 12: 'UNIMPLEMENTED' }[e.code] ?? `code ${e.code}: ${e}`
}
export function httpStatus(code, e) {
  return { 400: 'INVALID_ARGUMENT', 404: 'NOT_FOUND', 409: 'INVALID_STATE', 504: 'DEADLINE_EXCEEDED' }[code] ?? `status ${code}: ${e}`
}
