// The public rule no-implicit-end (bpmnlint 11.15.0) looks for the association of a compensation
// boundary event among the artifacts of the process only. Inside a subprocess the association
// stands in that subprocess: the modeler writes it there and Zeebe reads it there. So the public rule
// is asked about everything else, and compensation-wiring answers for those events.
const { is } = require('bpmnlint-utils');
const publicRule = require('bpmnlint/rules/no-implicit-end');

module.exports = () => {
  const { check } = publicRule();
  return {
    check(node, reporter) {
      const definitions = node.eventDefinitions || [];
      const undo = is(node, 'bpmn:BoundaryEvent') && definitions.length > 0
        && definitions.every(d => is(d, 'bpmn:CompensateEventDefinition'));
      if (!undo) check(node, reporter);
    },
  };
};
