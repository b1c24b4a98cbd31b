// One gang: its way from submission to bound, its pods, and what was said about it.

import { gangButton } from "/panels.js";
import { byId, clock, count, make } from "/text.js";

const PAUSE = 400; // milliseconds between two requests for the same gang

export class GangPanel {
  constructor(now) {
    this.now = now;
    this.gang = "";
    this.shown = "";
    this.asking = false;
  }

  // Ask when another gang is chosen, or anything may have changed for this one.
  select(gang) {
    this.gang = gang;
    this.shown = "";
    byId("gang-close").hidden = !gang;
    if (!gang) this.say("Choose a gang in the map or in a list to see its way from submission to bound.");
    else this.ask();
  }

  update(state, changes) {
    if (this.gang && (changes.all || changes.gangs.has(this.gang))) this.ask();
  }

  async ask() {
    if (this.asking) {
      this.again = true;
      return;
    }
    this.asking = true;
    this.again = false;
    const gang = this.gang;
    const [namespace, name] = gang.split("/");
    try {
      const answer = await fetch(`/gang?${new URLSearchParams({ namespace, name })}`);
      if (gang === this.gang) {
        if (answer.ok) this.show(await answer.json());
        else this.say(`There is no gang ${gang} any more.`);
      }
    } catch {
      // The link is told of elsewhere; it is asked again when there is news.
    }
    await new Promise((done) => setTimeout(done, PAUSE));
    this.asking = false;
    if (this.again || (this.gang && this.gang !== gang)) this.ask();
  }

  say(text) {
    byId("gang-body").replaceChildren(make("p", { class: "empty" }, text));
  }

  show(detail) {
    const text = JSON.stringify(detail);
    if (text === this.shown || detail.gang !== this.gang) return;
    this.shown = text;
    const body = byId("gang-body");
    const top = body.querySelector(".pods")?.scrollTop ?? 0;
    body.replaceChildren(title(detail), ...reason(detail), steps(detail), cliques(detail), lanes(detail, this.now()), story(detail));
    const pods = body.querySelector(".pods");
    if (pods) pods.scrollTop = top;
  }
}

function title(detail) {
  const { row } = detail;
  const name = gangButton(detail.gang, () => {});
  const line = make("p", { class: "gang-title" }, name, " ", make("span", { class: `badge ${row.phase.toLowerCase()}` }, row.phase));
  const facts = [];
  if (detail.owner) facts.push(`set ${detail.owner}`);
  if (row.queue) facts.push(`queue ${row.queue}`);
  if (detail.base) facts.push(`comes after ${detail.base}`);
  if (detail.domain) facts.push(`in ${detail.domain}`);
  if (detail.score !== undefined) facts.push(`score ${detail.score.toFixed(2)}`);
  return make("div", {}, line, make("p", { class: "meta" }, facts.join(", ")));
}

function reason(detail) {
  const { row } = detail;
  if (row.scheduled || !row.message) return [];
  return [
    make("p", { class: "reason big" }, make("span", { class: "badge wait" }, row.reason || "New"), ` ${row.message}`),
    make("p", { class: "hint" }, "What would let it in: ", make("code", {}, `penstock explain ${detail.gang}`)),
  ];
}

function seconds(from, to) {
  const gap = Math.round((Date.parse(to) - Date.parse(from)) / 1000);
  if (gap < 120) return `${gap} s`;
  return gap < 7200 ? `${Math.round(gap / 60)} min` : `${Math.round(gap / 3600)} h`;
}

// The stations on a line, with how long each took.
function steps(detail) {
  const marks = (detail.marks ?? []).filter((mark) => !mark.kind || mark.kind === "wait");
  const items = marks.map((mark, i) => {
    const wait = mark.kind === "wait";
    const took = i === 0 ? "" : `+${seconds(marks[i - 1].at, mark.at)}`;
    return make("li", { class: wait ? "step wait" : "step" },
      make("span", { class: "took" }, took || "start"),
      make("span", { class: "dot", "aria-hidden": "true" }),
      make("strong", {}, mark.what),
      make("time", { datetime: mark.at, title: mark.at }, clock(mark.at)));
  });
  return make("ol", { class: "steps", "aria-label": "From submission to bound" }, ...items);
}

function cliques(detail) {
  const head = ["Clique", "Pods", "Minimum", "Gated", "Bound", "Up"].map((word, i) => make("th", { scope: "col", class: i ? "n" : "" }, word));
  const rows = (detail.cliques ?? []).map((each) => make("tr", {}, make("th", { scope: "row" }, each.name),
    ...[each.pods, each.minimum, each.gated, each.bound, each.up].map((number) => make("td", { class: "n" }, String(number)))));
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)));
}

// A bar for each pod: until it was bound, until it was up, and from then on.
function lanes(detail, now) {
  const pods = detail.pods ?? [];
  if (!pods.length) return make("p", { class: "empty" }, "Its pods are still to be made.");
  const times = pods.flatMap((pod) => [pod.made, pod.bound, pod.up]).concat((detail.marks ?? []).map((mark) => mark.at)).filter(Boolean).map(Date.parse);
  const first = Math.min(...times);
  const coming = pods.some((pod) => !pod.up);
  const end = coming ? Math.max(now, ...times) : Math.max(...times);
  const last = end + Math.max(1000, (end - first) * 0.06);
  const part = (at) => (100 * (Date.parse(at) - first)) / (last - first);
  const rows = pods.map((pod) => {
    const track = make("span", { class: "track", "aria-hidden": "true" });
    const bar = (from, to, kind) => {
      const piece = make("i", { class: kind });
      piece.style.left = `${from}%`;
      piece.style.width = `${Math.max(0.8, to - from)}%`;
      track.append(piece);
    };
    if (pod.made) bar(part(pod.made), pod.bound ? part(pod.bound) : 100, "gated");
    if (pod.bound) bar(part(pod.bound), pod.up ? part(pod.up) : 100, "bound");
    if (pod.up) bar(part(pod.up), 100, "up");
    return make("li", {}, make("span", { class: "pod" }, pod.name), track, make("span", { class: `badge ${pod.state}` }, pod.state),
      make("span", { class: "on" }, pod.node ? `on ${pod.node}` : ""));
  });
  const left = detail.pods_left_out ? [make("p", { class: "more" }, `and ${count(detail.pods_left_out, "pod")} more`)] : [];
  return make("div", {}, make("h3", {}, "Pods"), make("ol", { class: "pods", tabindex: "0", "aria-label": "Pods of the gang" }, ...rows), ...left);
}

// All that has a time and words, in order.
function story(detail) {
  const marks = (detail.marks ?? []).filter((mark) => mark.text);
  const items = marks.map((mark) => make("li", { class: `said-${mark.kind ?? "step"}` },
    make("time", { datetime: mark.at, title: mark.at }, clock(mark.at)), make("strong", {}, mark.what), make("span", {}, mark.text)));
  return make("div", {}, make("h3", {}, "What was said"), make("ol", { class: "story" }, ...items));
}
