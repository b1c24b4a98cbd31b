// Puts the parts together: what the server tells goes to all of them, at most once a frame.

import { forget, forgetBut, isDark } from "/colours.js";
import { GangPanel } from "/gang.js";
import { TopologyMap } from "/map.js";
import { Panels } from "/panels.js";
import { Changes } from "/store.js";
import { Stream } from "/stream.js";
import { byId, setText } from "/text.js";

const SLOWER = 300; // milliseconds between two drawings of the lists
const WORDS = { connecting: "connecting", live: "live", reconnecting: "reconnecting" };

const map = new TopologyMap(choose);
const gang = new GangPanel(() => stream.now());
const panels = new Panels(choose, () => stream.now());
const pending = new Changes();
let drawn = 0;
let later = null;

function choose(name) {
  history.replaceState(null, "", name ? `#${encodeURIComponent(name)}` : location.pathname);
  map.select(name);
  gang.select(name);
  for (const button of document.querySelectorAll(".gang-name")) {
    button.toggleAttribute("data-chosen", button.dataset.gang === name);
  }
  if (name) setText(byId("map-said"), `gang ${name} chosen; see Gang below the map`);
}

// The map follows at once; lists, which people read, are left in peace for a moment.
function changed(state, changes) {
  map.update(state, changes);
  if (changes.all) forgetBut(state.gangs);
  for (const name of changes.gangs) if (!state.gangs.has(name)) forget(name);
  pending.merge(changes);
  changes.clear();
  later ??= setTimeout(lists, Math.max(0, SLOWER - (performance.now() - drawn)));
}

// One list after the other, with the browser's turn in between.
async function lists() {
  const now = new Changes();
  now.merge(pending);
  pending.clear();
  for (const draw of [...panels.drawings(now), () => gang.update(stream.state, now)]) {
    draw(stream.state);
    await new Promise((done) => setTimeout(done));
  }
  drawn = performance.now();
  later = null;
  if (!pending.isEmpty) changed(stream.state, new Changes());
}

function linked(word) {
  const link = byId("link");
  if (link.dataset.state === word) return;
  link.dataset.state = word;
  setText(link, WORDS[word]);
}

function themed() {
  byId("theme").setAttribute("aria-pressed", String(isDark()));
  map.themed();
  panels.themed();
}

byId("theme").addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // It holds until the page is left.
  }
  themed();
});
byId("gang-close").addEventListener("click", () => {
  choose("");
  byId("gang-heading").focus();
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && gang.gang && event.target.id !== "find") choose("");
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themed);

const stream = new Stream(changed, linked);
themed();
const [, asked] = /^#([\w./%-]+)$/.exec(location.hash) ?? [];
if (asked?.includes("%2F")) choose(asked.replace("%2F", "/"));
