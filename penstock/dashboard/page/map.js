// The topology map: a canvas over what is in sight, drawn anew where something has changed.

import { colourOf, isDark, palette } from "/colours.js";
import { beside, layout, nodeAt } from "/layout.js";
import { byId, count, deviceWord, make, setText } from "/text.js";

const MOST_ROWS = 150; // of the table of domains

export class TopologyMap {
  // `chosen(gang)` is called when somebody chooses a gang, or lets it go ("").
  constructor(chosen) {
    this.chosen = chosen;
    this.frame = byId("map");
    this.space = byId("map-space");
    this.canvas = byId("map-canvas");
    this.pen = this.canvas.getContext("2d", { alpha: false });
    this.tip = byId("map-node");
    this.nodes = new Map();
    this.head = { levels: [], resource: "" };
    this.map = null;
    this.gang = "";
    this.at = -1;
    this.turn = 0;
    this.dirty = new Set();
    this.whole = true;
    this.due = false;
    this.listen();
  }

  listen() {
    new ResizeObserver(() => this.laid()).observe(this.frame);
    this.frame.addEventListener("scroll", () => this.soon(), { passive: true });
    this.frame.addEventListener("keydown", (event) => this.key(event));
    this.frame.addEventListener("focus", () => this.focused());
    this.frame.addEventListener("blur", () => this.soon());
    this.canvas.addEventListener("pointermove", (event) => this.hover(this.under(event), event));
    this.canvas.addEventListener("pointerleave", () => this.hover(-1));
    this.canvas.addEventListener("click", (event) => this.clicked(this.under(event)));
    byId("domains").addEventListener("toggle", () => this.table());
  }

  update(state, changes) {
    this.nodes = state.nodes;
    this.head = state.head;
    if (changes.all || changes.moved || changes.head || !this.map) this.laid();
    else {
      for (const name of changes.nodes) this.dirty.add(name);
      if (changes.nodes.size) this.soon(false);
    }
    if (changes.all || changes.moved || changes.nodes.size) this.sums();
    // Who is at a node hears what becomes of it.
    const here = this.map && this.at >= 0 && document.activeElement === this.frame ? this.map.names[this.at] : "";
    if (here && changes.nodes.has(here)) setText(byId("map-said"), this.words(this.at));
  }

  themed() {
    this.colours = null;
    this.soon();
  }

  select(gang) {
    this.gang = gang;
    this.soon();
  }

  laid() {
    const width = this.frame.clientWidth - 2;
    if (width <= 0 || !this.nodes.size) return;
    const name = this.at >= 0 && this.map ? this.map.names[this.at] : "";
    this.map = layout(this.nodes, this.head.levels, width, 0.6 * window.innerHeight);
    this.at = name ? this.map.index.get(name) ?? -1 : -1;
    this.space.style.height = `${this.map.height}px`;
    const scale = window.devicePixelRatio || 1;
    const tall = Math.min(this.frame.clientHeight, Math.ceil(this.map.height));
    this.size = { width, tall, scale };
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(tall * scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${tall}px`;
    this.soon();
  }

  soon(whole = true) {
    this.whole ||= whole;
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.draw();
    });
  }

  draw() {
    if (!this.map || !this.size) return;
    this.colours ??= { ...palette(), dark: isDark() };
    const { pen } = this;
    const top = this.frame.scrollTop;
    const whole = this.whole || this.dirty.size > 400;
    pen.setTransform(this.size.scale, 0, 0, this.size.scale, 0, -top * this.size.scale);
    if (whole) {
      pen.fillStyle = this.colours.panel;
      pen.fillRect(0, top, this.size.width, this.size.tall);
      this.domains(top);
      this.range(top, (i) => this.node(i));
    } else {
      for (const name of this.dirty) {
        const i = this.map.index.get(name);
        if (i !== undefined && this.inSight(this.map.boxes[i].y, this.map.cell.h, top)) this.node(i);
      }
    }
    this.dirty.clear();
    this.whole = false;
    this.cursor();
  }

  inSight(y, h, top) {
    return y + h >= top && y <= top + this.size.tall;
  }

  range(top, draw) {
    const { boxes, cell, domains } = this.map;
    const racks = domains.filter((each) => each.inner.length === 0);
    for (const rack of racks.length ? racks : [{ first: 0, last: boxes.length, y: 0, h: Infinity }]) {
      if (!this.inSight(rack.y, rack.h, top)) continue;
      for (let i = rack.first; i < rack.last; i += 1) {
        if (this.inSight(boxes[i].y, cell.h, top)) draw(i);
      }
    }
  }

  domains(top) {
    const { pen, colours } = this;
    const { cell } = this.map;
    pen.textBaseline = "alphabetic";
    for (const each of this.map.domains) {
      if (!this.inSight(each.y, each.h, top)) continue;
      const rack = each.inner.length === 0;
      pen.fillStyle = rack ? colours.area : colours.panel;
      pen.strokeStyle = colours.line;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.roundRect(each.x + 0.5, each.y + 0.5, each.w - 1, each.h - 1, rack ? 4 : 7);
      pen.fill();
      pen.stroke();
      if (rack && !cell.label) continue;
      this.label(each, rack);
    }
  }

  label(domain, rack) {
    const { pen, colours } = this;
    const room = domain.w - 12;
    pen.font = `${rack ? 10 : 12}px system-ui, sans-serif`;
    const y = domain.y + (rack ? 12 : 16);
    const name = domain.name || "(no label)";
    const word = this.head.levels[domain.level] ?? "";
    pen.fillStyle = rack ? colours.dim : colours.text;
    const text = [`${word} ${name}`, name].find((each) => pen.measureText(each).width <= room);
    pen.fillText(text ?? cut(pen, name, room), domain.x + 7, y);
  }

  node(i) {
    const { pen, colours } = this;
    const { cell, boxes, names } = this.map;
    const node = this.nodes.get(names[i]);
    if (!node) return;
    const { x, y } = boxes[i];
    pen.fillStyle = this.map.domains.length ? colours.area : colours.panel;
    pen.fillRect(x - 1, y - 1, cell.w + 2, cell.h + 2);
    if (node.has > 0) (cell.bar || node.has > cell.columns * cell.rows ? this.bar : this.squares).call(this, node, x, y);
    else {
      pen.strokeStyle = colours.line;
      pen.strokeRect(x + 0.5, y + 0.5, cell.w - 1, cell.h - 1);
    }
    if (node.state) this.cross(x, y);
  }

  squares(node, x, y) {
    const { pen } = this;
    const { s, g, columns } = this.map.cell;
    let place = 0;
    const put = (amount, style, held) => {
      pen.fillStyle = style;
      for (let n = 0; n < amount && place < node.has; n += 1, place += 1) {
        const left = x + g + (place % columns) * (s + g);
        const top = y + g + Math.floor(place / columns) * (s + g);
        if (!held) pen.fillRect(left, top, s, s);
        else this.hollow(left, top, s, style);
      }
    };
    for (const [gang, amount, held] of node.parts) {
      pen.globalAlpha = this.gang && gang !== this.gang ? 0.22 : 1;
      const style = gang ? colourOf(gang, this.colours.dark) : this.colours.others;
      put(amount - (held ?? 0), style, false);
      put(held ?? 0, style, true);
    }
    pen.globalAlpha = this.gang ? 0.5 : 1;
    put(node.has, this.colours.free, false);
    pen.globalAlpha = 1;
  }

  hollow(left, top, s, style) {
    const { pen } = this;
    const wide = s >= 8 ? 2 : 1;
    pen.strokeStyle = style;
    pen.lineWidth = wide;
    pen.strokeRect(left + wide / 2, top + wide / 2, s - wide, s - wide);
  }

  bar(node, x, y) {
    const { pen } = this;
    const { w, h } = this.map.cell;
    let left = x + 1;
    const put = (amount, style) => {
      const wide = ((w - 2) * amount) / node.has;
      pen.fillStyle = style;
      pen.fillRect(left, y + 1, wide, h - 2);
      left += wide;
    };
    for (const [gang, amount] of node.parts) {
      pen.globalAlpha = this.gang && gang !== this.gang ? 0.22 : 1;
      put(Math.min(amount, node.has), gang ? colourOf(gang, this.colours.dark) : this.colours.others);
    }
    pen.globalAlpha = 1;
    put(Math.max(0, node.has - node.used), this.colours.free);
  }

  cross(x, y) {
    const { pen } = this;
    const { w, h } = this.map.cell;
    pen.strokeStyle = this.colours.closed;
    pen.lineWidth = w > 20 ? 2 : 1;
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x + w, y + h);
    pen.moveTo(x + w, y);
    pen.lineTo(x, y + h);
    pen.stroke();
  }

  cursor() {
    if (this.at < 0 || document.activeElement !== this.frame) return;
    const { x, y } = this.map.boxes[this.at];
    this.pen.strokeStyle = this.colours.focus;
    this.pen.lineWidth = 2;
    this.pen.strokeRect(x - 1, y - 1, this.map.cell.w + 2, this.map.cell.h + 2);
  }

  under(event) {
    if (!this.map) return -1;
    const box = this.canvas.getBoundingClientRect();
    return nodeAt(this.map, event.clientX - box.left, event.clientY - box.top + this.frame.scrollTop);
  }

  hover(i, event) {
    if (i < 0 || !this.map) {
      this.tip.hidden = true;
      return;
    }
    setText(this.tip, this.words(i));
    this.tip.hidden = false;
    if (event) this.put(event.clientX, event.clientY);
  }

  put(x, y) {
    const wide = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(8, Math.min(x + 14, window.innerWidth - wide - 8))}px`;
    this.tip.style.top = `${y + 18}px`;
  }

  words(i) {
    const name = this.map.names[i];
    const node = this.nodes.get(name);
    if (!node) return name;
    const where = this.head.levels.map((word, level) => `${word} ${node.path[level] || "(no label)"}`).join(", ");
    const what = deviceWord(this.head.resource);
    const state = node.state ? `, ${node.state}` : "";
    const who = node.parts.map(([gang, amount, held]) => `${amount} by ${gang || "others"}${held ? ` (${held} kept)` : ""}`);
    const by = who.length ? `: ${who.join(", ")}` : "";
    return `${name}${where ? `, ${where}` : ""}${state}. ${node.used} of ${count(node.has, what)} used${by}`;
  }

  clicked(i) {
    if (i < 0) return;
    this.move(i);
    this.frame.focus({ preventScroll: true });
    this.choose();
  }

  focused() {
    if (this.at < 0 && this.map?.names.length) this.move(0);
    else this.soon();
  }

  key(event) {
    if (!this.map || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.map.names.length - 1;
    const here = Math.max(0, this.at);
    const moves = {
      ArrowRight: () => Math.min(last, here + 1),
      ArrowLeft: () => Math.max(0, here - 1),
      ArrowDown: () => beside(this.map, here, 1),
      ArrowUp: () => beside(this.map, here, -1),
      PageDown: () => this.domain(here, 1),
      PageUp: () => this.domain(here, -1),
      Home: () => 0,
      End: () => last,
    };
    if (moves[event.key]) this.move(moves[event.key]());
    else if (event.key === "Enter" || event.key === " ") this.choose();
    else if (event.key === "Escape") this.chosen("");
    else return;
    event.preventDefault();
  }

  domain(here, step) {
    const racks = this.map.domains.filter((each) => each.inner.length === 0);
    const at = racks.findIndex((each) => here >= each.first && here < each.last);
    return racks.length ? racks[Math.max(0, Math.min(racks.length - 1, at + step))].first : here;
  }

  move(i) {
    if (i < 0) return;
    this.at = i;
    this.turn = 0;
    const { y } = this.map.boxes[i];
    const tall = this.frame.clientHeight;
    if (y < this.frame.scrollTop + 8) this.frame.scrollTop = Math.max(0, y - 40);
    else if (y + this.map.cell.h > this.frame.scrollTop + tall - 8) this.frame.scrollTop = y - tall + 60;
    setText(byId("map-said"), this.words(i));
    this.soon();
  }

  // Each time, the next of the gangs that are on the node.
  choose() {
    const node = this.at >= 0 ? this.nodes.get(this.map.names[this.at]) : null;
    const gangs = node ? node.parts.map(([gang]) => gang).filter(Boolean) : [];
    if (!gangs.length) return;
    this.chosen(gangs[this.turn % gangs.length]);
    this.turn += 1;
  }

  sums() {
    let [has, used, closed] = [0, 0, 0];
    for (const node of this.nodes.values()) {
      if (node.state) closed += 1;
      else [has, used] = [has + node.has, used + node.used];
    }
    const what = deviceWord(this.head.resource);
    setText(byId("tile-used-label"), `${what}s used`);
    setText(byId("tile-used"), `${used.toLocaleString("en")} of ${has.toLocaleString("en")}`);
    const shut = closed ? `, ${closed} closed` : "";
    setText(byId("tile-nodes"), `${this.nodes.size.toLocaleString("en")}${shut}`);
    const free = `${count(has - used, what)} free on ${count(this.nodes.size - closed, "node")}`;
    setText(byId("map-sum"), free);
    this.frame.setAttribute("aria-label", `Topology map: ${count(this.nodes.size, "node")}, ${used} of ${count(has, what)} used`);
    if (byId("domains").open) this.tableSoon();
  }

  tableSoon() {
    this.waiting ??= setTimeout(() => {
      this.waiting = null;
      this.table();
    }, 2000);
  }

  table() {
    if (!byId("domains").open || !this.map) return;
    // A table of hundreds of rows takes long to lay out; the narrowest levels are left to the map.
    const { domains } = this.map;
    let deepest = this.head.levels.length;
    while (deepest > 1 && domains.filter((each) => each.level < deepest).length > MOST_ROWS) deepest -= 1;
    const shown = domains.filter((each) => each.level < deepest);
    const rows = shown.slice(0, MOST_ROWS).map((each) => this.row(each));
    const left = domains.length - rows.length;
    const head = ["Domain", "Nodes", "Used", "Free"].map((word, i) => make("th", { scope: "col", class: i ? "n" : "" }, word));
    byId("domains-table").replaceChildren(
      make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)),
      ...(left ? [make("p", { class: "more" }, `${count(left, "narrower domain")} only in the map`)] : []),
    );
  }

  row(domain) {
    let [has, used] = [0, 0];
    for (let i = domain.first; i < domain.last; i += 1) {
      const node = this.nodes.get(this.map.names[i]);
      if (node && !node.state) [has, used] = [has + node.has, used + node.used];
    }
    const name = `${this.head.levels[domain.level]} ${domain.path.map((each) => each || "(no label)").join("/")}`;
    const cells = [domain.last - domain.first, `${used}/${has}`, has - used].map((each) => make("td", { class: "n" }, String(each)));
    return make("tr", { class: `depth-${domain.level}` }, make("th", { scope: "row" }, name), ...cells);
  }
}

function cut(pen, text, room) {
  let end = text.length;
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > room) end -= 1;
  return end > 1 ? `${text.slice(0, end)}…` : "";
}
