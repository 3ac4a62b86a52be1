// An error ends the activity it is caught at; Zeebe refuses a boundary event that says otherwise.
const { is } = require('bpmnlint-utils');

module.exports = () => ({
  check(node, reporter) {
    if (!is(node, 'bpmn:BoundaryEvent') || node.cancelActivity !== false) return;
    if ((node.eventDefinitions || []).some(d => is(d, 'bpmn:ErrorEventDefinition')))
      reporter.report(node.id, 'an error boundary event is interrupting');
  },
});
