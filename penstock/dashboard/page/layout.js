// Where each node is on the map: domains inside domains, flowing from left to right. No drawing.

const collator = new Intl.Collator("en", { numeric: true });

// A device is a square of `s`, and `g` between two; smaller the more nodes there are.
const SIZES = [[0, 18, 4], [0, 14, 3], [40, 11, 3], [200, 8, 2], [1200, 5, 2], [4000, 4, 1], [Infinity, 3, 1]];
const MOST_SQUARES = 16; // on a node; of what there is more of, a bar is drawn

export function ordered(nodes) {
  const names = [...nodes.keys()];
  let sorted = true;
  for (let i = 1; sorted && i < names.length; i += 1) {
    sorted = compare(nodes, names[i - 1], names[i]) <= 0;
  }
  return sorted ? names : names.sort((a, b) => compare(nodes, a, b));
}

function compare(nodes, a, b) {
  const [one, other] = [nodes.get(a).path, nodes.get(b).path];
  for (let i = 0; i < one.length; i += 1) {
    if (one[i] !== other[i]) return collator.compare(one[i], other[i]);
  }
  return collator.compare(a, b);
}

function shape([, s, g], has) {
  const squares = has > 0 && has <= MOST_SQUARES ? has : 8;
  const columns = squares <= 2 ? squares : Math.ceil(squares / 2);
  return { s, g, columns, rows: Math.ceil(squares / columns), bar: has > MOST_SQUARES };
}

// Give every node a box, and every domain one, inside so much width: as large as there is room for,
// but never smaller than can be told apart.
export function layout(nodes, levels, width, room) {
  const least = SIZES.findIndex(([most]) => nodes.size <= most);
  const first = nodes.size > 1200 ? least : 0; // it would not fit, and takes long to find out
  for (let i = first; ; i += 1) {
    const found = sized(nodes, levels, width, SIZES[i]);
    if (i === least || found.height <= room) return found;
  }
}

function sized(nodes, levels, width, size) {
  const names = ordered(nodes);
  const tree = { level: -1, name: "", path: [], inner: [], first: 0, last: names.length };
  split(tree, names, nodes, levels.length);
  let most = 0;
  for (const node of nodes.values()) if (node.has > most && node.has <= MOST_SQUARES) most = node.has;
  const cell = shape(size, most || MOST_SQUARES + 1);
  cell.w = cell.columns * (cell.s + cell.g) + cell.g;
  cell.h = cell.rows * (cell.s + cell.g) + cell.g;
  cell.gap = Math.max(2, cell.s - 2);
  cell.label = cell.s >= 4 ? 15 : 0; // small racks have no room for their names
  const boxes = new Array(names.length);
  place(tree, { names, boxes, cell, deepest: levels.length - 1 }, 0, 0, width);
  const domains = [];
  collect(tree, domains);
  const index = new Map(names.map((name, i) => [name, i]));
  return { names, index, boxes, domains, cell, height: tree.h + 8 };
}

function split(domain, names, nodes, depth) {
  const level = domain.level + 1;
  if (level >= depth) return;
  let start = domain.first;
  for (let i = domain.first; i <= domain.last; i += 1) {
    const here = i < domain.last ? nodes.get(names[i]).path[level] : null;
    if (i > start && here !== nodes.get(names[start]).path[level]) {
      const label = nodes.get(names[start]).path[level];
      const inner = { level, name: label, path: [...domain.path, label], inner: [], first: start, last: i };
      split(inner, names, nodes, depth);
      domain.inner.push(inner);
      start = i;
    }
  }
}

function place(domain, about, x, y, width) {
  const { cell } = about;
  const isRack = domain.inner.length === 0;
  const pad = domain.level < 0 ? 0 : isRack ? Math.max(3, cell.gap) : 8;
  const top = domain.level < 0 ? 0 : isRack ? cell.label : 22;
  domain.x = x;
  domain.y = y;
  const inside = Math.max(cell.w, width - 2 * pad);
  const [w, h] = isRack
    ? cells(domain, about, x + pad, y + top + pad, inside)
    : children(domain, about, x + pad, y + top + (domain.level < 0 ? 0 : 4), inside);
  // Domains that are not the last go over the whole width, so that their heads are in one line.
  domain.w = isRack ? w + 2 * pad : domain.level <= 0 ? width : w + 2 * pad;
  domain.h = top + h + (domain.level < 0 ? 0 : isRack ? 2 * pad : pad + 4);
}

function cells(domain, about, x, y, width) {
  const { cell, boxes } = about;
  const count = domain.last - domain.first;
  const fit = Math.max(1, Math.floor((width + cell.gap) / (cell.w + cell.gap)));
  const across = Math.min(count, fit, domain.level < 0 ? fit : wide(count));
  for (let i = 0; i < count; i += 1) {
    const column = i % across;
    const row = Math.floor(i / across);
    boxes[domain.first + i] = { x: x + column * (cell.w + cell.gap), y: y + row * (cell.h + cell.gap) };
  }
  const down = Math.ceil(count / across);
  return [across * (cell.w + cell.gap) - cell.gap, down * (cell.h + cell.gap) - cell.gap];
}

// How many nodes of a rack go side by side: about as many as there are rows, and rows that are full.
function wide(count) {
  const least = Math.max(2, Math.ceil(Math.sqrt(count)));
  for (let across = least; across <= 2 * least; across += 1) if (count % across === 0) return across;
  return least;
}

function children(domain, about, x, y, width) {
  const gap = domain.level < 0 ? 10 : 6;
  let [left, top, line, right] = [x, y, 0, x];
  for (const inner of domain.inner) {
    place(inner, about, left, top, width);
    const unfit = left > x && left + inner.w > x + width;
    if (unfit || (left > x && inner.level === 0)) {
      left = x;
      top += line + gap;
      line = 0;
      place(inner, about, left, top, width);
    }
    left += inner.w + gap;
    line = Math.max(line, inner.h);
    right = Math.max(right, left - gap);
  }
  return [right - x, top + line - y];
}

function collect(domain, found) {
  if (domain.level >= 0) found.push(domain);
  for (const inner of domain.inner) collect(inner, found);
}

// The node under a point, or -1.
export function nodeAt(map, x, y) {
  const { cell, boxes, domains } = map;
  const inside = (box, w, h) => x >= box.x && x < box.x + w && y >= box.y && y < box.y + h;
  const racks = domains.filter((each) => each.inner.length === 0 && inside(each, each.w, each.h));
  const [first, last] = racks.length ? [racks[0].first, racks[0].last] : domains.length ? [0, 0] : [0, boxes.length];
  for (let i = first; i < last; i += 1) {
    if (inside(boxes[i], cell.w + cell.gap, cell.h + cell.gap)) return i;
  }
  return -1;
}

// The nearest node straight above (-1) or below (1).
export function beside(map, from, direction) {
  const { boxes } = map;
  const here = boxes[from];
  let best = -1;
  let least = Infinity;
  for (let i = 0; i < boxes.length; i += 1) {
    const down = (boxes[i].y - here.y) * direction;
    if (down <= 0) continue;
    const far = down * 1000 + Math.abs(boxes[i].x - here.x);
    if (far < least) [best, least] = [i, far];
  }
  return best;
}
