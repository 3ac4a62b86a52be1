// Where Zeebe evaluates, a text without "=" is a constant: a condition or an output of
// that kind is refused at deploy, a correlation key of that kind matches every instance.
const { is } = require('bpmnlint-utils');

const isFeel = text => /^\s*=/.test(text || '');

module.exports = () => ({
  check(node, reporter) {
    if (is(node, 'bpmn:SequenceFlow') && node.conditionExpression && !isFeel(node.conditionExpression.body))
      reporter.report(node.id, 'a condition is an expression and starts with "="');
    const values = node.extensionElements && node.extensionElements.values || [];
    for (const value of values) {
      for (const output of is(value, 'zeebe:IoMapping') && value.outputParameters || [])
        if (!isFeel(output.source)) reporter.report(node.id, `the output to ${output.target} is an expression and starts with "="`);
      if (is(value, 'zeebe:Subscription') && !isFeel(value.correlationKey))
        reporter.report(node.id, 'a correlation key is an expression and starts with "="');
    }
  },
});
