// What the server has told: tables by key, and what has changed since somebody last looked.

const TABLES = ["nodes", "gangs", "queues", "refusals"];

export function emptyState() {
  return { head: null, nodes: new Map(), gangs: new Map(), queues: new Map(), refusals: new Map() };
}

// A node comes as [path, has, used, state, [[gang, amount, held], …]].
function nodeOf([path, has, used, state, parts]) {
  return { path, has, used, state: state ?? "", parts: parts ?? [] };
}

export class Changes {
  constructor() {
    this.clear();
  }

  clear() {
    this.head = false;
    this.moved = false; // nodes came, went, or are elsewhere: the map is laid out anew
    this.nodes = new Set();
    this.gangs = new Set();
    this.queues = false;
    this.refusals = false;
    this.all = false;
  }

  get isEmpty() {
    const flags = this.head || this.moved || this.queues || this.refusals || this.all;
    return !flags && !this.nodes.size && !this.gangs.size;
  }

  merge(other) {
    for (const each of ["head", "moved", "queues", "refusals", "all"]) this[each] ||= other[each];
    for (const key of other.nodes) this.nodes.add(key);
    for (const key of other.gangs) this.gangs.add(key);
  }
}

// Put a delta into a state, and note what it changed.
export function apply(state, delta, changes) {
  if (delta.head) {
    state.head = delta.head;
    changes.head = true;
  }
  for (const table of TABLES) {
    const rows = delta[table];
    if (!rows) continue;
    for (const key in rows) {
      if (table === "nodes") putNode(state.nodes, key, rows[key], changes);
      else putRow(state[table], key, rows[key]);
      if (table === "gangs") changes.gangs.add(key);
    }
    if (table === "queues" || table === "refusals") changes[table] = true;
  }
}

function putRow(rows, key, row) {
  if (row === null) rows.delete(key);
  else rows.set(key, row);
}

function putNode(nodes, key, row, changes) {
  const before = nodes.get(key);
  if (row === null) {
    nodes.delete(key);
    changes.moved = true;
    return;
  }
  const node = nodeOf(row);
  nodes.set(key, node);
  changes.nodes.add(key);
  if (!before || before.has !== node.has || before.path.join("/") !== node.path.join("/")) {
    changes.moved = true;
  }
}
