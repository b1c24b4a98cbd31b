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
  const wait = SLOWER - (performance.now() - drawn);
  if (pending.all || wait <= 0) lists();
  else later ??= setTimeout(lists, wait);
}

function lists() {
  clearTimeout(later);
  later = null;
  drawn = performance.now();
  panels.update(stream.state, pending);
  gang.update(stream.state, pending);
  pending.clear();
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
if (location.hash.length > 1) choose(decodeURIComponent(location.hash.slice(1)));
