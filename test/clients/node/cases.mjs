// What every client does against the engine, through one small interface that
// each client's file fills (c), and looked at from outside (eye).
import assert from 'node:assert/strict'

const { equal, deepEqual, ok, match } = assert
const key = /^[1-9][0-9]{15,18}$/
let orders = 0

async function one(c, type, opts = {}) {
  const jobs = await c.activate({ type, max: 1, timeout: 60_000, wait: 5_000, ...opts })
  equal(jobs.length, 1, `activated ${jobs.length} jobs of type ${type}, want 1`)
  return jobs[0]
}

async function none(c, type) {
  deepEqual(await c.activate({ type, max: 1, timeout: 60_000, wait: -1 }), [], `a job of type ${type} can be activated`)
}

async function refuses(c, status, promise) {
  let answer = 'no error'
  try { await promise } catch (e) { answer = c.status(e) }
  equal(answer, status)
}

// failed brings an instance of risky to an incident without retries.
async function failed(c, eye, message) {
  const { instance } = await c.create({ id: 'risky', variables: {} })
  const job = await one(c, 'risk')
  equal(job.instance, instance)
  await c.fail(job.key, { retries: 0, message, backOff: 0 })
  return { instance, job }
}

export const cases = {
  async topology(c) {
    const t = await c.topology()
    match(t.version, /^8\./)
    equal(t.brokers, 1)
    equal(t.partitions, 1)
  },

  async deploy(c) {
    const files = ['work', 'batch', 'risky', 'wait', 'person', 'alarm']
    const got = await c.deploy(files.map((f) => `${f}.bpmn`))
    deepEqual(got.map((p) => p.id).sort(), ['alarm-raised', 'batch', 'person', 'risky', 'wait', 'work'])
    for (const p of got) {
      equal(p.version, 1)
      match(p.key, key)
    }
  },

  async 'deploy the same again'(c) {
    const [first] = await c.deploy(['work.bpmn'])
    const [second] = await c.deploy(['work.bpmn'])
    deepEqual(second, first)
    equal(second.version, 1)
  },

  async 'deploy a broken model'(c) {
    await refuses(c, 'INVALID_ARGUMENT', c.deploy(['broken.bpmn']))
  },

  async 'create, activate, complete'(c, eye) {
    const { instance, version } = await c.create({ id: 'work', variables: { n: 1, deep: { list: [1, 'zwei', null] } } })
    match(instance, key)
    equal(version, 1)
    const job = await one(c, 'work')
    match(job.key, key)
    equal(job.instance, instance)
    equal(job.element, 'do')
    equal(job.process, 'work')
    equal(job.retries, 3)
    deepEqual(plain(job.headers), { region: 'eu' })
    deepEqual(plain(job.variables), { n: 1, deep: { list: [1, 'zwei', null] } })
    ok(job.deadline > Date.now() + 30_000, `deadline ${job.deadline}`)
    await c.complete(job.key, { done: true })
    equal(await eye.state(instance), 'COMPLETED')
    equal((await eye.variables(instance)).done, true)
    await refuses(c, 'NOT_FOUND', c.complete(job.key, {}))
  },

  async 'create an unknown process'(c) {
    await refuses(c, 'NOT_FOUND', c.create({ id: 'nowhere', variables: {} }))
  },

  async 'fetch some variables'(c) {
    await c.create({ id: 'work', variables: { a: 1, b: 2 } })
    const job = await one(c, 'work', { fetch: ['b', 'unknown'] })
    deepEqual(plain(job.variables), { b: 2 })
    await c.complete(job.key, {})
  },

  async 'create and wait for the result'(c) {
    const result = c.createWithResult({ id: 'work', variables: { n: 7 } })
    const job = await one(c, 'work')
    await c.complete(job.key, { answer: 42 })
    const variables = plain(await result)
    equal(variables.n, 7)
    equal(variables.answer, 42)
  },

  async 'an empty poll ends in time'(c) {
    const started = performance.now()
    deepEqual(await c.activate({ type: 'nobody', max: 1, timeout: 1000, wait: 300 }), [])
    const took = performance.now() - started
    ok(took >= 250 && took < 10_000, `${took} ms`)
  },

  async 'a long poll gets the next job'(c) {
    const poll = one(c, 'work', { wait: 20_000 })
    const { instance } = await c.create({ id: 'work', variables: {} })
    const job = await poll
    equal(job.instance, instance)
    await c.complete(job.key, {})
  },

  async 'fail with retries and back-off'(c, eye) {
    const { instance } = await c.create({ id: 'risky', variables: {} })
    const job = await one(c, 'risk')
    await c.fail(job.key, { retries: 2, message: 'not now', backOff: 600_000 })
    await none(c, 'risk')
    await eye.advance(600_001)
    const again = await one(c, 'risk')
    equal(again.key, job.key)
    equal(again.retries, 2)
    await c.complete(again.key, {})
    equal(await eye.state(instance), 'COMPLETED')
  },

  async 'a job times out'(c, eye) {
    await c.create({ id: 'work', variables: {} })
    const job = await one(c, 'work', { timeout: 60_000 })
    await none(c, 'work')
    await eye.advance(61_001)
    const again = await one(c, 'work')
    equal(again.key, job.key)
    equal(again.retries, 3)
    await c.complete(again.key, {})
  },

  async 'extend the time-out'(c, eye) {
    await c.create({ id: 'work', variables: {} })
    const job = await one(c, 'work', { timeout: 60_000 })
    await c.timeout(job.key, 3_600_000)
    await eye.advance(600_000)
    await none(c, 'work')
    await c.complete(job.key, {})
  },

  async 'throw an error that is caught'(c, eye) {
    const { instance } = await c.create({ id: 'risky', variables: {} })
    const job = await one(c, 'risk')
    await c.throwError(job.key, 'REFUSED', 'sold out', { why: 'full' })
    equal(await eye.state(instance), 'COMPLETED')
    const ended = (await eye.elements({ processInstanceKey: instance, state: 'COMPLETED' })).map((e) => e.elementId)
    ok(ended.includes('refusedEnd'), `ended: ${ended}`)
    equal((await eye.variables(instance)).refusal, 'full')
  },

  async 'throw an error nobody catches'(c, eye) {
    const { instance } = await c.create({ id: 'risky', variables: {} })
    const job = await one(c, 'risk')
    await c.throwError(job.key, 'OTHER', 'what now', {})
    const [incident] = await eye.incidents(instance)
    equal(incident.errorType, 'UNHANDLED_ERROR_EVENT')
    match(incident.errorMessage, /'OTHER'/)
    equal(incident.elementId, 'risk')
    await none(c, 'risk')
    await c.resolve(incident.incidentKey)
    const again = await one(c, 'risk')
    equal(again.key, job.key)
    await c.complete(again.key, {})
    equal(await eye.state(instance), 'COMPLETED')
  },

  async 'an incident, resolved'(c, eye) {
    const { instance, job } = await failed(c, eye, 'the supplier is down')
    const [incident] = await eye.incidents(instance)
    equal(incident.errorType, 'JOB_NO_RETRIES')
    equal(incident.errorMessage, 'the supplier is down')
    equal(incident.jobKey, job.key)
    await refuses(c, 'INVALID_STATE', c.resolve(incident.incidentKey))
    await c.retries(job.key, 1)
    await c.resolve(incident.incidentKey)
    deepEqual(await eye.incidents(instance), [])
    const again = await one(c, 'risk')
    equal(again.retries, 1)
    await c.complete(again.key, {})
    equal(await eye.state(instance), 'COMPLETED')
    await refuses(c, 'NOT_FOUND', c.resolve(incident.incidentKey))
  },

  async 'a message, then a timer'(c, eye) {
    const order = `order-${++orders}`
    const { instance } = await c.create({ id: 'wait', variables: { order } })
    const message = await c.publish({ name: 'paid', key: order, id: `${order}-1`, ttl: 60_000, variables: { amount: 12.5 } })
    match(message, key)
    await eye.until('the message has arrived', async () => (await eye.variables(instance)).amount === 12.5)
    await refuses(c, c.twice ?? 'ALREADY_EXISTS', c.publish({ name: 'paid', key: order, id: `${order}-1`, ttl: 60_000, variables: {} }))
    equal(await eye.state(instance), 'ACTIVE')
    await eye.advance(3_599_000)
    equal(await eye.state(instance), 'ACTIVE')
    await eye.advance(60_000)
    equal(await eye.state(instance), 'COMPLETED')
  },

  async 'a message that waits'(c, eye) {
    const order = `order-${++orders}`
    await c.publish({ name: 'paid', key: order, ttl: 3_600_000, variables: { early: true } })
    const { instance } = await c.create({ id: 'wait', variables: { order } })
    await eye.until('the message has arrived', async () => (await eye.variables(instance)).early === true)
    await c.cancel(instance)
  },

  async 'correlate a message'(c, eye) {
    const order = `order-${++orders}`
    await refuses(c, 'NOT_FOUND', c.correlate({ name: 'paid', key: order, variables: {} }))
    const { instance } = await c.create({ id: 'wait', variables: { order } })
    equal(await c.correlate({ name: 'paid', key: order, variables: { amount: 3 } }), instance)
    equal((await eye.variables(instance)).amount, 3)
    await c.cancel(instance)
  },

  async 'a signal starts a process'(c) {
    await c.signal({ name: 'alarm', variables: { level: 'high' } })
    const job = await one(c, 'react')
    equal(job.process, 'alarm-raised')
    deepEqual(plain(job.variables), { level: 'high' })
    await c.complete(job.key, {})
  },

  async 'set variables'(c, eye) {
    const { instance } = await c.create({ id: 'work', variables: { n: 1 } })
    await c.setVariables(instance, { n: 2, m: [true] }, false)
    const { n, m } = await eye.variables(instance)
    deepEqual([n, m], [2, [true]])
    await c.cancel(instance)
  },

  async cancel(c, eye) {
    const { instance } = await c.create({ id: 'work', variables: {} })
    const job = await one(c, 'work')
    equal(job.instance, instance)
    await c.cancel(instance)
    equal(await eye.state(instance), 'TERMINATED')
    await refuses(c, 'NOT_FOUND', c.complete(job.key, {}))
    await refuses(c, 'NOT_FOUND', c.cancel(instance))
  },

  // A closed worker may leave a poll behind, so workers have job types of their own.
  async 'a worker'(c, eye) {
    const instances = []
    for (let n = 0; n < 20; n++) instances.push((await c.create({ id: 'batch', variables: { n, kind: 'polled' } })).instance)
    const seen = []
    const stop = await c.worker('polled', (variables) => { seen.push(variables.n); return { square: variables.n ** 2 } })
    await eye.until('the worker has done 20 jobs', async () => {
      const states = await Promise.all(instances.map((i) => eye.state(i)))
      return states.every((s) => s === 'COMPLETED')
    })
    await stop()
    deepEqual(seen.sort((a, b) => a - b), instances.map((_, n) => n))
    equal((await eye.variables(instances[7])).square, 49)
  },

  async 'a streaming worker'(c, eye) {
    const before = (await c.create({ id: 'batch', variables: { n: 0, kind: 'streamed' } })).instance
    const stop = await c.stream('streamed', (variables) => ({ square: variables.n ** 2 }))
    const instances = [before]
    for (let n = 1; n < 20; n++) instances.push((await c.create({ id: 'batch', variables: { n, kind: 'streamed' } })).instance)
    await eye.until('the worker has done 20 jobs', async () => {
      const states = await Promise.all(instances.map((i) => eye.state(i)))
      return states.every((s) => s === 'COMPLETED')
    })
    await stop()
    equal((await eye.variables(instances[7])).square, 49)
  },

  async 'a user task'(c, eye) {
    const { instance } = await c.create({ id: 'person', variables: { price: 5 } })
    const [task] = await c.userTasks({ processInstanceKey: instance, state: 'CREATED' })
    equal(task.elementId, 'approve')
    equal(task.name, 'Approve')
    deepEqual(task.candidateGroups, ['desk'])
    const group = await c.userTasks({ candidateGroup: 'desk', state: 'CREATED', processInstanceVariables: [{ name: 'price', value: '5' }] })
    deepEqual(group.map((t) => t.userTaskKey), [task.userTaskKey])
    deepEqual(await c.userTasks({ candidateGroup: 'nobody' }), [])
    deepEqual(await c.userTasks({ processInstanceVariables: [{ name: 'price', value: '6' }] }), [])
    await c.assign(task.userTaskKey, 'ada')
    const [mine] = await c.userTasks({ assignee: 'ada' })
    equal(mine.userTaskKey, task.userTaskKey)
    await c.completeUserTask(task.userTaskKey, { approved: true })
    equal(await eye.state(instance), 'COMPLETED')
    equal((await eye.variables(instance)).approved, true)
    const [after] = await c.userTasks({ userTaskKey: task.userTaskKey })
    equal(after.state, 'COMPLETED')
    await refuses(c, c.gone ?? 'NOT_FOUND', c.completeUserTask(task.userTaskKey, {}))
  },

  async 'search with filters, order and pages'(c) {
    const mine = []
    for (let n = 0; n < 7; n++) mine.push((await c.create({ id: 'risky', variables: { n } })).instance)
    const filter = { processDefinitionId: 'risky', state: 'ACTIVE' }
    const sort = [{ field: 'processInstanceKey', order: 'DESC' }]
    const seen = []
    let after
    for (let page = 0; ; page++) {
      ok(page < 5, 'the pages do not end')
      const r = await c.searchInstances({ filter, sort, page: after ? { after, limit: 3 } : { limit: 3 } })
      equal(Number(r.page.totalItems), 7)
      ok(r.items.length <= 3)
      if (r.items.length === 0) break
      seen.push(...r.items.map((i) => i.processInstanceKey))
      after = r.page.endCursor
      if (!after || seen.length === 7) break
    }
    deepEqual(seen, [...mine].reverse())
    const from = await c.searchInstances({ filter, sort, page: { from: 5, limit: 10 } })
    deepEqual(from.items.map((i) => i.processInstanceKey), [mine[1], mine[0]])
    const some = await c.searchInstances({ filter: { processInstanceKey: { $in: [mine[2], mine[4]] } }, sort })
    deepEqual(some.items.map((i) => i.processInstanceKey), [mine[4], mine[2]])
    const either = await c.searchInstances({ filter: { state: 'ACTIVE', $or: [{ processInstanceKey: mine[0] }, { processInstanceKey: mine[6] }] }, sort })
    deepEqual(either.items.map((i) => i.processInstanceKey), [mine[6], mine[0]])
    const holding = await c.searchInstances({ filter: { processDefinitionId: 'risky', variables: [{ name: 'n', value: '3' }], state: 'ACTIVE' } })
    deepEqual(holding.items.map((i) => i.processInstanceKey), [mine[3]])
    const like = await c.searchInstances({ filter: { processDefinitionId: { $like: 'ris*' }, state: 'ACTIVE' } })
    equal(Number(like.page.totalItems), 7)
    await refuses(c, c.badFilter ?? 'INVALID_ARGUMENT', c.searchInstances({ filter: { processInstanceKey: 'meow' } }))
    for (const i of mine) await c.cancel(i)
  },

  async 'search incidents and get one'(c, eye) {
    const { instance, job } = await failed(c, eye, 'no luck')
    const found = await c.searchIncidents({ filter: { processInstanceKey: instance, state: 'ACTIVE', errorType: 'JOB_NO_RETRIES' } })
    equal(found.items.length, 1)
    const incident = await c.getIncident(found.items[0].incidentKey)
    equal(incident.errorMessage, 'no luck')
    equal(incident.jobKey, job.key)
    equal(incident.elementInstanceKey, job.elementInstance)
    equal(incident.state, 'ACTIVE')
    await c.cancel(instance)
    const left = await c.searchIncidents({ filter: { processInstanceKey: instance, state: 'ACTIVE' } })
    equal(left.items.length, 0)
  },

  async 'search jobs'(c, eye) {
    const { instance } = await failed(c, eye, 'why')
    const found = await c.searchJobs({ filter: { processInstanceKey: instance, state: 'FAILED', type: 'risk' } })
    equal(found.items.length, 1)
    equal(found.items[0].errorMessage, 'why')
    equal(Number(found.items[0].retries), 0)
    await c.cancel(instance)
  },

  async 'search variables and elements'(c) {
    const { instance } = await c.create({ id: 'work', variables: { name: 'Ada', n: 3 } })
    const variables = await c.searchVariables({ filter: { processInstanceKey: instance, name: 'name' } })
    equal(variables.items.length, 1)
    equal(variables.items[0].value, '"Ada"')
    const elements = await c.searchElements({ filter: { processInstanceKey: instance, elementId: 'do' } })
    equal(elements.items.length, 1)
    equal(elements.items[0].state, 'ACTIVE')
    equal(elements.items[0].type, 'SERVICE_TASK')
    const again = await c.getElement(elements.items[0].elementInstanceKey)
    equal(again.processInstanceKey, instance)
    await c.cancel(instance)
  },

  async 'search definitions and read the XML'(c) {
    const found = await c.searchDefinitions({ filter: { processDefinitionId: 'work' } })
    equal(found.items.length, 1)
    equal(found.items[0].name, 'One task')
    match(await c.xml(found.items[0].processDefinitionKey), /<serviceTask id="do"/)
  },

  async 'delete a definition'(c) {
    const [p] = await c.deploy(['alarm.bpmn'])
    await c.deleteResource(p.key)
    await refuses(c, 'NOT_FOUND', c.create({ id: 'alarm-raised', variables: {} }))
  },
}

// plain strips classes and prototypes that clients give to decoded JSON.
function plain(value) { return JSON.parse(JSON.stringify(value, (_, v) => (v?.isLosslessNumber ? Number(v.value) : v))) }
