// The lists beside the map. Each is drawn anew only when what it shows has changed.

import { colourOf, isDark } from "/colours.js";
import { age, byId, clock, count, make, setText } from "/text.js";

const MOST = 60; // rows of a list; of more there is only their number

export function gangButton(gang, chosen) {
  const button = make("button", { type: "button", class: "gang-name", "data-gang": gang });
  const spot = make("i", { class: "spot", "aria-hidden": "true" });
  spot.style.background = colourOf(gang, isDark());
  button.append(spot, gang);
  button.addEventListener("click", () => chosen(gang));
  return button;
}

// Put rows into a list, keeping those that are as they were, so that focus and reading are not lost.
function fill(list, rows) {
  const there = new Map([...list.children].map((child) => [child.dataset.key, child]));
  let before = null;
  for (const { key, sign, build } of rows) {
    let element = there.get(key);
    there.delete(key);
    if (!element || element.dataset.sign !== sign) {
      const made = build();
      made.dataset.key = key;
      made.dataset.sign = sign;
      const held = element?.contains(document.activeElement);
      if (element) element.replaceWith(made);
      element = made;
      if (held) element.querySelector("button")?.focus();
    }
    const place = before ? before.nextSibling : list.firstChild;
    if (element !== place) list.insertBefore(element, place);
    before = element;
  }
  for (const gone of there.values()) gone.remove();
}

function more(id, shown, all, hint) {
  const element = byId(id);
  element.hidden = all <= shown;
  setText(element, `and ${(all - shown).toLocaleString("en")} more${hint}`);
}

export class Panels {
  constructor(chosen, now) {
    this.chosen = chosen;
    this.now = now;
    this.state = null;
    this.dark = isDark();
    byId("find").addEventListener("input", () => this.gangs());
    setInterval(() => this.ages(), 1000);
  }

  // What is to be drawn anew, in parts that each take little.
  drawings(changes) {
    const { all, head, queues, refusals } = changes;
    const gangs = all || changes.gangs.size > 0;
    const parts = [
      [all || head, () => this.head()],
      [gangs, () => this.waiting()],
      [all || refusals || head, () => this.refusals()],
      [all || queues, () => this.queues()],
      [gangs, () => this.gangs()],
    ];
    return parts.filter(([due]) => due).map(([, draw]) => (state) => {
      this.state = state;
      draw();
    });
  }

  themed() {
    if (!this.state) return;
    for (const button of document.querySelectorAll(".gang-name")) {
      button.firstChild.style.background = colourOf(button.dataset.gang, isDark());
    }
  }

  head() {
    const { head } = this.state;
    setText(byId("cluster"), head.cluster);
    const notes = byId("notes");
    notes.hidden = !head.notes.length;
    notes.replaceChildren(...head.notes.map((note) => make("p", { class: "note" }, note)));
  }

  waiting() {
    const found = [];
    for (const [gang, row] of this.state.gangs) if (!row.scheduled) found.push([gang, row]);
    found.sort(([a, one], [b, other]) => compare(one.since ?? "", other.since ?? "") || collator.compare(a, b));
    const all = this.state.gangs.size;
    setText(byId("tile-waiting"), found.length.toLocaleString("en"));
    setText(byId("tile-running"), (all - found.length).toLocaleString("en"));
    setText(byId("waiting-sum"), found.length ? "the longest first" : "");
    byId("waiting-empty").hidden = found.length > 0;
    const rows = found.slice(0, MOST).map(([gang, row]) => ({
      key: gang,
      sign: `${row.reason}\n${row.message}\n${row.since}\n${row.pods}`,
      build: () => this.card(gang, row),
    }));
    fill(byId("waiting"), rows);
    more("waiting-more", MOST, found.length, "");
    this.ages();
  }

  card(gang, row) {
    const meta = make("p", { class: "meta" }, make("span", { class: "badge wait" }, row.reason || "New"));
    if (row.since) meta.append(" for ", make("time", { datetime: row.since, "data-since": row.since }));
    meta.append(`, ${count(row.pods ?? 0, "pod")}`);
    if (row.queue) meta.append(`, queue ${row.queue}`);
    return make("li", {}, gangButton(gang, this.chosen), meta, make("p", { class: "reason" }, row.message ?? ""));
  }

  gangs() {
    if (!this.state) return;
    const words = byId("find").value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    for (const [gang, row] of this.state.gangs) {
      const text = `${gang} ${row.phase} ${row.queue ?? ""} ${row.reason ?? ""}`.toLowerCase();
      if (words.every((word) => text.includes(word))) found.push(gang);
    }
    byName(found);
    setText(byId("gangs-sum"), count(found.length, "gang"));
    const rows = found.slice(0, MOST).map((gang) => {
      const row = this.state.gangs.get(gang);
      return { key: gang, sign: [row.phase, row.bound, row.pods, row.queue].join(), build: () => this.gangRow(gang, row) };
    });
    fill(byId("gangs"), rows);
    more("gangs-more", MOST, found.length, "; find them by name");
  }

  gangRow(gang, row) {
    return make("tr", {},
      make("th", { scope: "row" }, gangButton(gang, this.chosen)),
      make("td", {}, make("span", { class: `badge ${row.phase.toLowerCase()}` }, row.phase)),
      make("td", { class: "n" }, `${row.bound ?? 0}/${row.pods ?? 0}`),
      make("td", {}, row.queue ?? ""));
  }

  queues() {
    const found = [...this.state.queues];
    byId("queues-empty").hidden = found.length > 0;
    fill(byId("queues"), found.map(([name, row]) => ({ key: name, sign: JSON.stringify(row), build: () => queueRow(name, row) })));
  }

  refusals() {
    const found = [...this.state.refusals].sort(([a], [b]) => compare(b, a));
    setText(byId("tile-refused"), this.state.head.audited ? found.length.toLocaleString("en") : "–");
    setText(byId("refused-sum"), found.length ? "the newest first" : "");
    byId("refused-empty").hidden = found.length > 0;
    setText(byId("refused-empty"), this.state.head.audited ? "None was refused." : "The audit log cannot be read; the note above says why.");
    fill(byId("refused"), found.slice(0, MOST).map(([key, row]) => ({ key, sign: "", build: () => refusal(row) })));
    more("refused-more", MOST, found.length, "; penstock audit query lists all");
    this.ages();
  }

  ages() {
    const now = this.now();
    for (const element of document.querySelectorAll("time[data-since]")) {
      setText(element, age(now - Date.parse(element.dataset.since)));
    }
  }
}

function queueRow(name, row) {
  const devices = Object.entries(row.devices ?? {}).map(([device, amount]) => `${amount} ${device}`).join(", ");
  const said = [...(row.limits ?? [])];
  if (row.namespaces?.length) said.unshift(`namespaces ${row.namespaces.join(", ")}`);
  const label = make("th", { scope: "row" }, name);
  if (row.default) label.append(" ", make("span", { class: "badge" }, "default"));
  if (!row.known && name !== "(none)") label.append(" ", make("span", { class: "badge wait" }, "not in the policy"));
  if (said.length) label.append(make("small", {}, said.join("; ")));
  const waiting = make("td", { class: row.waiting ? "n warn" : "n" }, String(row.waiting ?? 0));
  return make("tr", {}, label, make("td", { class: "n" }, String(row.gangs ?? 0)), waiting,
    make("td", { class: "n" }, String(row.pods ?? 0)), make("td", {}, devices || "–"));
}

function refusal(row) {
  const when = make("time", { datetime: row.at, title: row.at }, clock(row.at));
  const meta = make("p", { class: "meta" }, when, `, ${row.operation.toLowerCase()} by ${row.user || "nobody"}`);
  const rules = (row.violations ?? []).map((each) => make("li", {},
    make("code", {}, each.rule), each.path ? make("span", { class: "path" }, ` ${each.path}`) : null, `: ${each.message}`));
  if (row.more) rules.push(make("li", {}, `and ${row.more} more`));
  return make("li", { class: "refusal" }, make("p", { class: "what" }, row.what), meta, make("ul", { class: "rules" }, ...rules));
}

const collator = new Intl.Collator("en", { numeric: true });

// chat-2 before chat-10, unless there are so many that nobody reads them all.
function byName(gangs) {
  return gangs.sort(gangs.length > 1000 ? compare : collator.compare);
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}
