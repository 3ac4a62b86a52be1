// Draws the layout of a model from a table of places.
//
//   node layout.mjs MODEL.bpmn TABLE.json          rewrites MODEL.bpmn
//   node layout.mjs --check MODEL.bpmn TABLE.json  exit 1 when it would change
//
// The model's meaning is read from the file, an older diagram in it is dropped.
// The table says where things stand:
//
//   shapes  id -> [centre x, centre y] or [centre x, centre y, width, height]
//   routes  flow id -> "hv", "vh", "hvh@X", "vhv@Y", or a list of points
//   labels  id -> [centre x, top y] or [centre x, top y, width]
//
// A picture in which shapes or labels lie on each other, or a line runs through
// a shape that it does not connect, is refused with the ids.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// Packages are looked up in NODE_MODULES_DIR, so that they need not live in the repository.
const need = createRequire(process.env.NODE_MODULES_DIR
  ? pathToFileURL(process.env.NODE_MODULES_DIR + '/package.json') : import.meta.url);
const { BpmnModdle } = await import(pathToFileURL(need.resolve('bpmn-moddle')));
const zeebe = need('zeebe-bpmn-moddle/resources/zeebe.json');

const args = process.argv.slice(2);
const check = args[0] === '--check' && args.shift();
const [modelFile, tableFile] = args;
const table = { routes: {}, labels: {}, ...JSON.parse(fs.readFileSync(tableFile, 'utf8')) };
const before = fs.readFileSync(modelFile, 'utf8');
const moddle = new BpmnModdle({ zeebe });
const { rootElement: model, warnings } = await moddle.fromXML(before);
const problems = warnings.map(w => w.message);

const make = (type, attrs) => moddle.create(type, attrs);
const isLine = e => e.$type === 'bpmn:SequenceFlow' || e.$type === 'bpmn:Association';
const isEvent = e => e.$type.endsWith('Event');
const isGateway = e => e.$type.endsWith('Gateway');
const isBoundary = e => e.$type === 'bpmn:BoundaryEvent';

function* contents(scope) {
  for (const e of scope.flowElements ?? []) {
    yield e;
    if (e.flowElements) yield* contents(e);
  }
  yield* scope.artifacts ?? [];
}
const process_ = model.rootElements.find(r => r.$type === 'bpmn:Process');
const elements = [...contents(process_)];
const boxes = new Map();   // element -> {x, y, width, height}
const texts = new Map();   // element -> label box
const lines = new Map();   // element -> points

for (const id of [...Object.keys(table.shapes), ...Object.keys(table.routes), ...Object.keys(table.labels)])
  if (!elements.some(e => e.id === id)) problems.push(`the table places ${id}, which the model does not have`);

for (const e of elements.filter(e => !isLine(e))) {
  const place = table.shapes[e.id];
  if (!place) { problems.push(`no place for ${e.id}`); continue; }
  const [w, h] = place.length === 4 ? place.slice(2) : isEvent(e) ? [36, 36] : isGateway(e) ? [50, 50] : [100, 80];
  boxes.set(e, { x: place[0] - w / 2, y: place[1] - h / 2, width: w, height: h });
}
if (problems.length) fail();

const textBox = (name, [cx, top, width = 90]) => {
  const wide = Math.min(width, Math.max(24, Math.ceil(name.length * 5.9)));
  let rows = 1, used = 0;
  for (const word of name.split(' ')) {
    const w = word.length * 5.9;
    if (used && used + 5 + w > wide) { rows++; used = w; } else used += (used ? 5 : 0) + w;
  }
  return { x: Math.round(cx - wide / 2), y: Math.round(top), width: wide, height: 14 * rows };
};
for (const [e, b] of boxes) {
  if (!e.name || !(isEvent(e) || isGateway(e))) continue;
  const cx = b.x + b.width / 2;
  const at = table.labels[e.id] ?? (isGateway(e) ? [cx, b.y - 20] : [cx, b.y + b.height + 5]);
  texts.set(e, textBox(e.name, at));
}

for (const e of elements.filter(isLine)) {
  const s = boxes.get(e.sourceRef), t = boxes.get(e.targetRef);
  let [sx, sy, tx, ty] = [s.x + s.width / 2, s.y + s.height / 2, t.x + t.width / 2, t.y + t.height / 2];
  // A subprocess is met at the height of its neighbour, not in its middle.
  const level = (e, own, other, b) => e.flowElements && other > b.y && other < b.y + b.height ? other : own;
  [sy, ty] = [level(e.sourceRef, sy, ty, s), level(e.targetRef, ty, sy, t)];
  const out = { l: [s.x, sy], r: [s.x + s.width, sy], u: [sx, s.y], d: [sx, s.y + s.height] };
  const into = { l: [t.x, ty], r: [t.x + t.width, ty], u: [tx, t.y], d: [tx, t.y + t.height] };
  const right = tx > sx, below = ty > sy;
  let route = table.routes[e.id];
  if (!route) route = Math.abs(sy - ty) < 1 ? 'h' : Math.abs(sx - tx) < 1 ? 'v' : isBoundary(e.sourceRef) || isGateway(e.sourceRef) ? 'vh' : 'hv';
  const [shape, mid] = typeof route === 'string' ? route.split('@') : ['points'];
  const m = Number(mid);
  lines.set(e, {
    h: () => [out[right ? 'r' : 'l'], into[right ? 'l' : 'r']],
    v: () => [out[below ? 'd' : 'u'], into[below ? 'u' : 'd']],
    hv: () => [out[right ? 'r' : 'l'], [tx, sy], into[below ? 'u' : 'd']],
    vh: () => [out[below ? 'd' : 'u'], [sx, ty], into[right ? 'l' : 'r']],
    hvh: () => [out[m > sx ? 'r' : 'l'], [m, sy], [m, ty], into[m < tx ? 'l' : 'r']],
    vhv: () => [out[m > sy ? 'd' : 'u'], [sx, m], [tx, m], into[m < ty ? 'u' : 'd']],
    points: () => route,
  }[shape]());
  if (e.name) {
    const [[x0, y0], [x1, y1]] = lines.get(e);
    const at = table.labels[e.id] ?? (y0 === y1 ? [x0 + Math.sign(x1 - x0) * 16, y0 - 17] : [x0 + 17, y0 + Math.sign(y1 - y0) * 12 - 7]);
    texts.set(e, textBox(e.name, at));
  }
}

// ---- what a reader could not read
const apart = (a, b) => a.x >= b.x + b.width || b.x >= a.x + a.width || a.y >= b.y + b.height || b.y >= a.y + a.height;
const inside = (a, b) => a.x >= b.x && a.y >= b.y && a.x + a.width <= b.x + b.width && a.y + a.height <= b.y + b.height;
const holds = (outer, e) => { for (let p = e.$parent; p; p = p.$parent) if (p === outer) return true; return false; };
const shapes = [...boxes];
for (const [i, [a, ba]] of shapes.entries()) {
  if (a.$parent !== process_ && !inside(ba, boxes.get(a.$parent))) problems.push(`${a.id} sticks out of ${a.$parent.id}`);
  for (const [b, bb] of shapes.slice(i + 1)) {
    if (holds(a, b) || holds(b, a) || (isBoundary(a) && a.attachedToRef === b) || (isBoundary(b) && b.attachedToRef === a)) continue;
    if (!apart(ba, bb)) problems.push(`${a.id} and ${b.id} lie on each other`);
  }
}
const labels = [...texts];
for (const [i, [a, ta]] of labels.entries()) {
  for (const [b, tb] of labels.slice(i + 1)) if (!apart(ta, tb)) problems.push(`the labels of ${a.id} and ${b.id} lie on each other`);
  for (const [b, bb] of shapes) if (a !== b && !apart(ta, bb) && !(holds(b, a) && inside(ta, bb))) problems.push(`the label of ${a.id} lies on ${b.id}`);
}
const segments = points => points.slice(1).map((p, i) => {
  const [x0, x1] = [points[i][0], p[0]].sort((m, n) => m - n), [y0, y1] = [points[i][1], p[1]].sort((m, n) => m - n);
  return { x: x0, y: y0, width: Math.max(x1 - x0, 0.5), height: Math.max(y1 - y0, 0.5) };
});
for (const [e, points] of lines) for (const segment of segments(points)) {
  for (const [b, bb] of shapes) {
    if (holds(b, e) || b === e.sourceRef || b === e.targetRef || (isBoundary(e.sourceRef) && e.sourceRef.attachedToRef === b)) continue;
    if (!apart(segment, bb)) problems.push(`the line ${e.id} runs through ${b.id}`);
  }
  for (const [b, tb] of labels) if (!apart(segment, tb)) problems.push(`the line ${e.id} runs through the label of ${b.id}`);
}
if (problems.length) fail();

// ---- write it down
const bounds = b => make('dc:Bounds', b);
const label = e => texts.has(e) ? { label: make('bpmndi:BPMNLabel', { bounds: bounds(texts.get(e)) }) } : {};
const planeElement = [
  ...shapes.map(([e, b]) => make('bpmndi:BPMNShape', {
    id: `${e.id}_di`, bpmnElement: e, bounds: bounds(b), ...label(e),
    ...(e.flowElements ? { isExpanded: true } : {}),
    ...(e.$type === 'bpmn:ExclusiveGateway' ? { isMarkerVisible: true } : {}),
  })),
  ...[...lines].map(([e, points]) => make('bpmndi:BPMNEdge', {
    id: `${e.id}_di`, bpmnElement: e, waypoint: points.map(([x, y]) => make('dc:Point', { x, y })), ...label(e),
  })),
];
const plane = make('bpmndi:BPMNPlane', { id: 'Plane', bpmnElement: process_, planeElement });
model.diagrams = [make('bpmndi:BPMNDiagram', { id: 'Diagram', plane })];
const after = (await moddle.toXML(model, { format: true })).xml;
if (check && after !== before) { problems.push('the file differs from what its table gives; run layout.sh'); fail(); }
if (!check) fs.writeFileSync(modelFile, after);

function fail() {
  for (const p of problems) console.error(`${modelFile}: ${p}`);
  process.exit(1);
}
