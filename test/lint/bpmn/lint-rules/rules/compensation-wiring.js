// A compensation boundary event has exactly one association, to a handler marked
// isForCompensation, and no sequence flow. A handler stands outside the flow,
// serves one boundary event and carries no boundary events itself.
const { is } = require('bpmnlint-utils');

const isUndo = node => is(node, 'bpmn:BoundaryEvent')
  && (node.eventDefinitions || []).some(d => is(d, 'bpmn:CompensateEventDefinition'));
const connected = node => (node.incoming || []).length + (node.outgoing || []).length > 0;

module.exports = () => ({
  check(node, reporter) {
    if (isUndo(node)) checkEvent(node, reporter);
    if (is(node, 'bpmn:Activity') && node.isForCompensation) checkHandler(node, reporter);
  },
});

function checkEvent(event, reporter) {
  const from = (event.$parent.artifacts || []).filter(a => is(a, 'bpmn:Association') && a.sourceRef === event);
  if (connected(event)) reporter.report(event.id, 'a compensation boundary event has no sequence flow');
  if (from.length !== 1) return reporter.report(event.id, `a compensation boundary event has one association to its handler, not ${from.length}`);
  const handler = from[0].targetRef;
  if (!handler || !handler.isForCompensation) reporter.report(event.id, 'the association ends at an activity that is not marked isForCompensation');
}

function checkHandler(handler, reporter) {
  const scope = handler.$parent;
  const to = (scope.artifacts || []).filter(a => is(a, 'bpmn:Association') && a.targetRef === handler && isUndo(a.sourceRef));
  const carried = (scope.flowElements || []).filter(e => is(e, 'bpmn:BoundaryEvent') && e.attachedToRef === handler);
  if (connected(handler)) reporter.report(handler.id, 'a compensation handler has no sequence flow');
  if (to.length !== 1) reporter.report(handler.id, `a compensation handler serves one compensation boundary event, not ${to.length}`);
  if (carried.length) reporter.report(handler.id, 'a compensation handler cannot carry boundary events');
}
