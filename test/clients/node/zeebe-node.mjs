// zeebe-node, the older client of gRPC alone.
import { ZBClient } from 'zeebe-node'
import fs from 'node:fs'
import { grpc, models, grpcStatus, run } from './harness.mjs'

const zeebe = new ZBClient(grpc, { loglevel: 'NONE', useTLS: false, retry: false })

const noSearch = 'the gRPC API has no search'

run({
  status: grpcStatus,
  close: () => zeebe.close(),
  cannot: {
    'correlate a message': 'the gRPC API publishes only',
    'a user task': 'the gRPC API has no user tasks',
    'search with filters, order and pages': noSearch,
    'search incidents and get one': noSearch,
    'search jobs': noSearch,
    'search variables and elements': noSearch,
    'search definitions and read the XML': noSearch,
    'extend the time-out': 'the client has no such call',
    'a streaming worker': 'the client has no streaming',
    'delete a definition': 'the client has no such call',
  },
  async topology() {
    const t = await zeebe.topology()
    return { version: t.gatewayVersion, brokers: t.brokers.length, partitions: t.partitionsCount }
  },
  async deploy(files) {
    const out = []
    for (const f of files) {
      const r = await zeebe.deployResource({ name: f, process: fs.readFileSync(`${models}/${f}`) })
      out.push(...r.deployments.map(({ process: p }) => ({ id: p.bpmnProcessId, version: p.version, key: p.processDefinitionKey })))
    }
    return out
  },
  async create({ id, variables }) {
    const r = await zeebe.createProcessInstance({ bpmnProcessId: id, variables })
    return { instance: r.processInstanceKey, version: r.version }
  },
  createWithResult: async ({ id, variables }) =>
    (await zeebe.createProcessInstanceWithResult({ bpmnProcessId: id, variables, requestTimeout: 20_000 })).variables,
  async activate({ type, max, timeout, wait, fetch }) {
    // A poll without jobs is a stream without messages; the client's promise never settles then.
    const silence = new Promise((r) => setTimeout(r, Math.max(wait, 0) + 250, []))
    const jobs = await Promise.race([silence, zeebe.activateJobs({ type, maxJobsToActivate: max, timeout, requestTimeout: wait, worker: 'cases', fetchVariable: fetch })])
    return jobs.map((j) => ({
      key: j.key, instance: j.processInstanceKey, element: j.elementId, elementInstance: j.elementInstanceKey, process: j.bpmnProcessId,
      retries: j.retries, headers: j.customHeaders, variables: j.variables, deadline: Number(j.deadline),
    }))
  },
  complete: (jobKey, variables) => zeebe.completeJob({ jobKey, variables }),
  fail: (jobKey, { retries, message, backOff }) => zeebe.failJob({ jobKey, retries, errorMessage: message, retryBackOff: backOff }),
  throwError: (jobKey, errorCode, errorMessage, variables) => zeebe.throwError({ jobKey, errorCode, errorMessage, variables }),
  retries: (jobKey, retries) => zeebe.updateJobRetries({ jobKey, retries }),
  resolve: (incidentKey) => zeebe.resolveIncident({ incidentKey }),
  publish: async ({ name, key, id, ttl, variables }) =>
    (await zeebe.publishMessage({ name, correlationKey: key, messageId: id, timeToLive: ttl, variables })).key,
  signal: ({ name, variables }) => zeebe.broadcastSignal({ signalName: name, variables }),
  setVariables: (elementInstanceKey, variables, local) => zeebe.setVariables({ elementInstanceKey, variables, local }),
  cancel: (instance) => zeebe.cancelProcessInstance(instance),
  async worker(type, work) {
    const w = zeebe.createWorker({ taskType: type, taskHandler: (job) => job.complete(work(job.variables)), pollInterval: 100, longPoll: 2_000 })
    return () => w.close()
  },
})
