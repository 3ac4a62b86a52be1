// Breaks a model in ways that Zeebe refuses or turns into an incident, one at a
// time, and checks that our rules find each: a rule that finds nothing proves nothing.
//
//   node mutants.mjs MODEL.bpmn
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const home = process.env.NODE_MODULES_DIR;
const need = createRequire(pathToFileURL(path.join(home, 'package.json')));
const { Linter } = need('bpmnlint');
const NodeResolver = need('bpmnlint/lib/resolver/node-resolver');
const { BpmnModdle } = await import(pathToFileURL(need.resolve('bpmn-moddle')));
const zeebe = need('zeebe-bpmn-moddle/resources/zeebe.json');

const model = fs.readFileSync(process.argv[2], 'utf8');
const config = JSON.parse(fs.readFileSync(path.join(home, 'bpmnlintrc-8-5.json'), 'utf8'));
const linter = new Linter({ config, resolver: new NodeResolver({ require: need }) });

// [what, rule, element, text or pattern, replacement]
const mutants = [
  ['no association', 'compensation-wiring', 'segmentsUndo', /<bpmn:association id="segmentsUndo_undoes".*?\/>/, ''],
  ['handler without its mark', 'compensation-wiring', 'segmentsUndo', /(id="undoSegments"[^>]*) isForCompensation="true"/, '$1'],
  ['two events, one handler', 'compensation-wiring', 'paymentVoid', /(sourceRef="segmentsUndo" targetRef=)"undoSegments"/, '$1"paymentVoid"'],
  ['a flow out of the compensation event', 'compensation-wiring', 'paymentUndo', '<bpmn:association id="paymentUndo_undoes"',
    '<bpmn:sequenceFlow id="extra" sourceRef="paymentUndo" targetRef="paymentKnown" /><bpmn:association id="paymentUndo_undoes"',
    [/(id="paymentUndo"[^>]*>)/, '$1<bpmn:outgoing>extra</bpmn:outgoing>']],
  ['a boundary event on a handler', 'compensation-wiring', 'paymentVoid', /(id="paymentUnknown"[^>]*attachedToRef=)"paymentAuthorize"/, '$1"paymentVoid"'],
  ['an error event that does not interrupt', 'error-boundary-interrupting', 'flightUnknown', /(id="flightUnknown"[^>]*)>/, '$1 cancelActivity="false">'],
  ['a condition without =', 'expression-required', 'decided_to_paymentCapture', '>=sagaDecision = "completed"<', '>${sagaDecision == "completed"}<'],
  ['an output without =', 'expression-required', 'paymentAuthorize', 'source="=authorizationId" target="paymentAuthorization"', 'source="authorizationId" target="paymentAuthorization"'],
  ['a correlation key without =', 'expression-required', 'Message_saga_cancel', 'correlationKey="=sagaId"', 'correlationKey="sagaId"'],
  ['retries in words', 'static-retries', 'flightReserve', 'type="flight.reserve" retries="3"', 'type="flight.reserve" retries="many"'],
  ['no retries at all', 'static-retries', 'flightReserve', 'type="flight.reserve" retries="3"', 'type="flight.reserve" retries="0"'],
  ['retries without a bound', 'static-retries', 'flightReserve', 'type="flight.reserve" retries="3"', 'type="flight.reserve" retries="1000"'],
  ['a dead end', 'implicit-end', 'bookingConfirm', /<bpmn:outgoing>bookingConfirm_to_bookEnd<\/bpmn:outgoing>/, ''],
];

let missed = 0;
for (const [what, rule, element, from, to, also] of mutants) {
  let text = model.replace(from, to);
  if (text === model) { console.error(`${what}: the model no longer has what this breaks`); missed++; continue; }
  if (also) text = text.replace(...also);
  const { rootElement } = await new BpmnModdle({ zeebe }).fromXML(text);
  const found = await linter.lint(rootElement);
  const reports = Object.entries(found).filter(([name]) => name.endsWith(rule)).flatMap(([, list]) => list);
  if (!reports.some(r => r.id === element)) {
    console.error(`${what}: ${rule} says nothing about ${element}; found ${JSON.stringify(reports.map(r => r.id))}`);
    missed++;
  }
}
console.log(`bpmn lint: ${mutants.length - missed} of ${mutants.length} broken models found`);
process.exit(missed ? 1 : 0);
