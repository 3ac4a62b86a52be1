// Parses one AsyncAPI document with the public parser and prints every diagnostic, then what the parser understood.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { readFileSync } from 'node:fs';

const [modules, file] = process.argv.slice(2);
const require = createRequire(pathToFileURL(modules + '/x.js'));
const { Parser } = require('@asyncapi/parser');
const { document, diagnostics } = await new Parser().parse(readFileSync(file, 'utf8'));
console.log(JSON.stringify({
  diagnostics: diagnostics.map((d) => ({ severity: d.severity, code: String(d.code), message: d.message, path: d.path.join('.') })),
  version: document?.version() ?? '',
  channels: document?.channels().all().map((c) => c.address()) ?? [],
  messages: document?.messages().all().map((m) => m.id()) ?? [],
  operations: document?.operations().all().map((o) => ({ id: o.id(), action: o.action() })) ?? [],
}));
