// @camunda8/sdk over gRPC.
import { Camunda8 } from '@camunda8/sdk'
import fs from 'node:fs'
import { grpc, rest, models, grpcStatus, run } from './harness.mjs'

const zeebe = new Camunda8({
  CAMUNDA_AUTH_STRATEGY: 'NONE', CAMUNDA_LOG_LEVEL: 'none',
  ZEEBE_GRPC_ADDRESS: `grpc://${grpc}`, ZEEBE_REST_ADDRESS: `http://${rest}`,
}).getZeebeGrpcApiClient()

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
  },
  async topology() {
    const t = await zeebe.topology()
    return { version: t.gatewayVersion, brokers: t.brokers.length, partitions: t.partitionsCount }
  },
  async deploy(files) {
    const r = await zeebe.deployResources(files.map((f) => ({ name: f, process: fs.readFileSync(`${models}/${f}`) })))
    return r.deployments.map(({ process: p }) => ({ id: p.bpmnProcessId, version: p.version, key: p.processDefinitionKey }))
  },
  async create({ id, variables }) {
    const r = await zeebe.createProcessInstance({ bpmnProcessId: id, variables })
    return { instance: r.processInstanceKey, version: r.version }
  },
  createWithResult: async ({ id, variables }) =>
    (await zeebe.createProcessInstanceWithResult({ bpmnProcessId: id, variables, requestTimeout: 20_000 })).variables,
  async activate({ type, max, timeout, wait, fetch }) {
    const jobs = await zeebe.activateJobs({ type, maxJobsToActivate: max, timeout, requestTimeout: wait, worker: 'cases', fetchVariable: fetch, tenantIds: ['<default>'] })
    return jobs.map((j) => ({
      key: j.key, instance: j.processInstanceKey, element: j.elementId, elementInstance: j.elementInstanceKey, process: j.bpmnProcessId,
      retries: j.retries, headers: j.customHeaders, variables: j.variables, deadline: Number(j.deadline),
    }))
  },
  complete: (jobKey, variables) => zeebe.completeJob({ jobKey, variables }),
  fail: (jobKey, { retries, message, backOff }) => zeebe.failJob({ jobKey, retries, errorMessage: message, retryBackOff: backOff }),
  throwError: (jobKey, errorCode, errorMessage, variables) => zeebe.throwError({ jobKey, errorCode, errorMessage, variables }),
  retries: (jobKey, retries) => zeebe.updateJobRetries({ jobKey, retries }),
  timeout: (jobKey, timeout) => zeebe.updateJobTimeout({ jobKey, timeout }),
  resolve: (incidentKey) => zeebe.resolveIncident({ incidentKey }),
  publish: async ({ name, key, id, ttl, variables }) =>
    (await zeebe.publishMessage({ name, correlationKey: key, messageId: id, timeToLive: ttl, variables })).key,
  signal: ({ name, variables }) => zeebe.broadcastSignal({ signalName: name, variables }),
  setVariables: (elementInstanceKey, variables, local) => zeebe.setVariables({ elementInstanceKey, variables, local }),
  cancel: (instance) => zeebe.cancelProcessInstance(instance),
  deleteResource: (resourceKey) => zeebe.deleteResource({ resourceKey }),
  async worker(type, work) {
    const w = zeebe.createWorker({ taskType: type, taskHandler: (job) => job.complete(work(job.variables)), pollInterval: 100, longPoll: 2_000 })
    return () => w.close()
  },
  async stream(type, work) {
    const s = await zeebe.streamJobs({ type, worker: 'stream', timeout: 30_000, tenantIds: ['<default>'], taskHandler: (job) => job.complete(work(job.variables)) })
    return () => s.close()
  },
})
