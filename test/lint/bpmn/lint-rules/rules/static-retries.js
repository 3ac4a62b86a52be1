// Retries are written down as a number, small and not zero: a word becomes an incident at run time,
// and an expression is not under version control.
const { is } = require('bpmnlint-utils');

const most = 20;

module.exports = () => ({
  check(node, reporter) {
    for (const value of node.extensionElements && node.extensionElements.values || []) {
      if (!is(value, 'zeebe:TaskDefinition')) continue;
      if (!/^[0-9]+$/.test(value.retries || '') || Number(value.retries) < 1 || Number(value.retries) > most)
        reporter.report(node.id, `retries is a number from 1 to ${most}, not ${JSON.stringify(value.retries)}`);
    }
  },
});
