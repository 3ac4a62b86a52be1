// @camunda8/orchestration-cluster-api: REST alone. Strict validation makes it a
// test of the shape of every request and of every answer.
import createCamundaClient from '@camunda8/orchestration-cluster-api'
import fs from 'node:fs'
import { rest, models, httpStatus, run } from './harness.mjs'

const open = (validation) => createCamundaClient({ config: {
  CAMUNDA_REST_ADDRESS: `http://${rest}`, CAMUNDA_AUTH_STRATEGY: 'NONE', CAMUNDA_SDK_LOG_LEVEL: 'silent', CAMUNDA_SDK_VALIDATION: validation,
} })
// Answers must also have no property that the schema does not know.
const api = open('req:strict,res:fanatical')
// Strict requests lose the cursor of a page: the client takes {after, limit} for {from = 0, limit}.
const pages = open('req:none,res:fanatical')

const now = { consistency: { waitUpToMs: 0 } }

run({
  status: (e) => (e.status ? httpStatus(e.status, e) : e.name === 'CamundaValidationError' ? `validation: ${e.message}` : `${e.name}: ${e}`),
  twice: 'INVALID_STATE', // ALREADY_EXISTS is 409 over HTTP
  cannot: { 'a streaming worker': 'REST has no streaming' },
  async topology() {
    const t = await api.getTopology()
    return { version: t.gatewayVersion, brokers: t.brokers.length, partitions: t.partitionsCount }
  },
  async deploy(files) {
    const r = await api.createDeployment({ resources: files.map((f) => new File([fs.readFileSync(`${models}/${f}`)], f, { type: 'application/xml' })) })
    return r.deployments.map(({ processDefinition: p }) => ({ id: p.processDefinitionId, version: p.processDefinitionVersion, key: p.processDefinitionKey }))
  },
  async create({ id, variables }) {
    const r = await api.createProcessInstance({ processDefinitionId: id, variables })
    return { instance: r.processInstanceKey, version: r.processDefinitionVersion }
  },
  createWithResult: async ({ id, variables }) =>
    (await api.createProcessInstance({ processDefinitionId: id, variables, awaitCompletion: true, requestTimeout: 20_000 })).variables,
  async activate({ type, max, timeout, wait, fetch }) {
    const r = await api.activateJobs({ type, maxJobsToActivate: max, timeout, requestTimeout: wait, worker: 'cases', fetchVariable: fetch })
    return r.jobs.map((j) => ({
      key: j.jobKey, instance: j.processInstanceKey, element: j.elementId, elementInstance: j.elementInstanceKey, process: j.processDefinitionId,
      retries: j.retries, headers: j.customHeaders, variables: j.variables, deadline: j.deadline,
    }))
  },
  complete: (jobKey, variables) => api.completeJob({ jobKey, variables }),
  fail: (jobKey, { retries, message, backOff }) => api.failJob({ jobKey, retries, errorMessage: message, retryBackOff: backOff }),
  throwError: (jobKey, errorCode, errorMessage, variables) => api.throwJobError({ jobKey, errorCode, errorMessage, variables }),
  retries: (jobKey, retries) => api.updateJob({ jobKey, changeset: { retries } }),
  timeout: (jobKey, timeout) => api.updateJob({ jobKey, changeset: { timeout } }),
  resolve: (incidentKey) => api.resolveIncident({ incidentKey }),
  publish: async ({ name, key, id, ttl, variables }) =>
    (await api.publishMessage({ name, correlationKey: key, messageId: id, timeToLive: ttl, variables })).messageKey,
  correlate: async ({ name, key, variables }) => (await api.correlateMessage({ name, correlationKey: key, variables })).processInstanceKey,
  signal: ({ name, variables }) => api.broadcastSignal({ signalName: name, variables }),
  setVariables: (elementInstanceKey, variables, local) => api.createElementInstanceVariables({ elementInstanceKey, variables, local }),
  cancel: (processInstanceKey) => api.cancelProcessInstance({ processInstanceKey }),
  deleteResource: (resourceKey) => api.deleteResource({ resourceKey }),
  userTasks: async (filter) => (await api.searchUserTasks({ filter }, now)).items,
  assign: (userTaskKey, assignee) => api.assignUserTask({ userTaskKey, assignee }),
  completeUserTask: (userTaskKey, variables) => api.completeUserTask({ userTaskKey, variables }),
  searchInstances: (q) => pages.searchProcessInstances(q, now),
  searchIncidents: (q) => api.searchIncidents(q, now),
  getIncident: (incidentKey) => api.getIncident({ incidentKey }, now),
  searchJobs: (q) => api.searchJobs(q, now),
  searchVariables: (q) => api.searchVariables(q, now),
  searchElements: (q) => api.searchElementInstances(q, now),
  getElement: (elementInstanceKey) => api.getElementInstance({ elementInstanceKey }, now),
  searchDefinitions: (q) => api.searchProcessDefinitions(q, now),
  xml: (processDefinitionKey) => api.getProcessDefinitionXml({ processDefinitionKey }, now),
  async worker(type, work) {
    const w = api.createJobWorker({
      jobType: type, jobTimeoutMs: 30_000, maxParallelJobs: 5, pollIntervalMs: 100, pollTimeoutMs: 2_000, workerName: 'worker',
      jobHandler: (job) => job.complete(work(job.variables)),
    })
    return () => w.stop()
  },
})
