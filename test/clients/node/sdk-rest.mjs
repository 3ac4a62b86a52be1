// @camunda8/sdk over REST: its own REST client.
import { Camunda8 } from '@camunda8/sdk'
import fs from 'node:fs'
import { grpc, rest, models, httpStatus, run } from './harness.mjs'

const api = new Camunda8({
  CAMUNDA_AUTH_STRATEGY: 'NONE', CAMUNDA_LOG_LEVEL: 'none',
  ZEEBE_GRPC_ADDRESS: `grpc://${grpc}`, ZEEBE_REST_ADDRESS: `http://${rest}`,
}).getCamundaRestClient()

run({
  status: (e) => httpStatus(e.statusCode ?? e.response?.statusCode, e),
  twice: 'INVALID_STATE', // ALREADY_EXISTS is 409 over HTTP
  cannot: {
    'a streaming worker': 'REST has no streaming',
    'search jobs': 'the client has no such call',
  },
  async topology() {
    const t = await api.getTopology()
    return { version: t.gatewayVersion, brokers: t.brokers.length, partitions: t.partitionsCount }
  },
  async deploy(files) {
    const r = await api.deployResources(files.map((f) => ({ name: f, content: fs.readFileSync(`${models}/${f}`, 'utf8') })))
    return r.processes.map((p) => ({ id: p.processDefinitionId, version: p.processDefinitionVersion, key: p.processDefinitionKey }))
  },
  async create({ id, variables }) {
    const r = await api.createProcessInstance({ processDefinitionId: id, variables })
    return { instance: r.processInstanceKey, version: Number(r.processDefinitionVersion) }
  },
  createWithResult: async ({ id, variables }) =>
    (await api.createProcessInstanceWithResult({ processDefinitionId: id, variables, requestTimeout: 20_000 })).variables,
  async activate({ type, max, timeout, wait, fetch }) {
    const jobs = await api.activateJobs({ type, maxJobsToActivate: max, timeout, requestTimeout: wait, worker: 'cases', fetchVariable: fetch })
    return jobs.map((j) => ({
      key: j.jobKey, instance: j.processInstanceKey, element: j.elementId, elementInstance: j.elementInstanceKey, process: j.processDefinitionId,
      retries: j.retries, headers: j.customHeaders, variables: j.variables, deadline: Number(j.deadline),
    }))
  },
  complete: (jobKey, variables) => api.completeJob({ jobKey, variables }),
  fail: (jobKey, { retries, message, backOff }) => api.failJob({ jobKey, retries, errorMessage: message, retryBackOff: backOff }),
  throwError: (jobKey, errorCode, errorMessage, variables) => api.errorJob({ jobKey, errorCode, errorMessage, variables }),
  retries: (jobKey, retries) => api.updateJob({ jobKey, retries }),
  timeout: (jobKey, timeout) => api.updateJob({ jobKey, timeout }),
  resolve: (incidentKey) => api.resolveIncident(incidentKey),
  publish: async ({ name, key, id, ttl, variables }) =>
    (await api.publishMessage({ name, correlationKey: key, messageId: id, timeToLive: ttl, variables })).messageKey,
  correlate: async ({ name, key, variables }) => (await api.correlateMessage({ name, correlationKey: key, variables })).processInstanceKey,
  signal: ({ name, variables }) => api.broadcastSignal({ signalName: name, variables }),
  setVariables: (elementInstanceKey, variables, local) => api.updateElementInstanceVariables({ elementInstanceKey, variables, local }),
  cancel: (processInstanceKey) => api.cancelProcessInstance({ processInstanceKey }),
  deleteResource: (resourceKey) => api.deleteResource({ resourceKey }),
  userTasks: async (filter) => (await api.searchUserTasks({ filter })).items,
  assign: (userTaskKey, assignee) => api.assignUserTask({ userTaskKey, assignee }),
  completeUserTask: (userTaskKey, variables) => api.completeUserTask({ userTaskKey, variables }),
  searchInstances: (q) => api.searchProcessInstances(q),
  searchIncidents: (q) => api.searchIncidents(q),
  getIncident: async (incidentKey) => (await api.searchIncidents({ filter: { incidentKey } })).items[0], // it has no get
  searchVariables: (q) => api.searchVariables(q),
  searchElements: (q) => api.searchElementInstances(q),
  getElement: (elementInstanceKey) => api.getElementInstance(elementInstanceKey),
  searchDefinitions: (q) => api.searchProcessDefinitions(q),
  xml: (processDefinitionKey) => api.getProcessDefinitionXML(processDefinitionKey),
  async worker(type, work) {
    const w = api.createJobWorker({
      type, timeout: 30_000, maxJobsToActivate: 5, pollIntervalMs: 100, worker: 'worker', autoStart: true,
      jobHandler: (job) => job.complete(work(job.variables)),
    })
    return () => w.stop()
  },
})
