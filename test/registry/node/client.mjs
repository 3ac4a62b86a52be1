// Reads and writes framed records with a public client: one JSON object per line in, one out.
// {"body": base64} is decoded, and encoded again under the id that it names.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { createInterface } from 'node:readline';

const [modules, host] = process.argv.slice(2);
const require = createRequire(pathToFileURL(modules + '/x.js'));
const { SchemaRegistry } = require('@kafkajs/confluent-schema-registry');
const registry = new SchemaRegistry({ host });
for await (const line of createInterface({ input: process.stdin })) {
  const body = Buffer.from(JSON.parse(line).body, 'base64');
  try {
    const data = await registry.decode(body);
    const again = await registry.encode(body.readInt32BE(1), data);
    console.log(JSON.stringify({ data, body: again.toString('base64') }));
  } catch (e) {
    console.log(JSON.stringify({ error: String(e) }));
  }
}
