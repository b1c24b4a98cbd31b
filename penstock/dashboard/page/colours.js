// A gang has the same colour wherever it is shown: it follows from its name, unless another has it.

const HUES = 24;
const SHADES = { light: [[0.62, 0.17], [0.74, 0.13], [0.5, 0.15]], dark: [[0.72, 0.15], [0.6, 0.17], [0.82, 0.11]] };
const COLOURS = HUES * 3;
const STEP = 31; // no divisor of it, so that all are tried, and neighbours are not alike
const slots = new Map();
const taken = new Set();
const cache = [];

function hash(text) {
  let found = 2166136261;
  for (let i = 0; i < text.length; i += 1) {
    found = Math.imul(found ^ text.charCodeAt(i), 16777619);
  }
  // The last letters of names differ most: have them change all of it.
  found = Math.imul(found ^ (found >>> 15), 2246822507);
  return (found ^ (found >>> 13)) >>> 0;
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// Two gangs have one colour only where there are more gangs than colours.
function slotOf(gang) {
  let slot = slots.get(gang);
  if (slot === undefined) {
    const first = hash(gang) % COLOURS;
    slot = first;
    for (let i = 0; i < COLOURS && taken.has(slot); i += 1) slot = (first + i * STEP) % COLOURS;
    slots.set(gang, slot);
    taken.add(slot);
  }
  return slot;
}

// Let others have the colour of a gang that is gone.
export function forget(gang) {
  taken.delete(slots.get(gang));
  slots.delete(gang);
}

export function forgetBut(gangs) {
  for (const gang of slots.keys()) if (!gangs.has(gang)) forget(gang);
}

export function colourOf(gang, dark) {
  const slot = slotOf(gang);
  const key = dark ? slot : slot + COLOURS;
  cache[key] ??= written(slot, dark);
  return cache[key];
}

function written(slot, dark) {
  const [light, chroma] = SHADES[dark ? "dark" : "light"][Math.floor(slot / HUES)];
  return `oklch(${light} ${chroma} ${((slot % HUES) * 360) / HUES})`;
}

// The page's own colours, for what is drawn by hand.
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: read("text"), dim: read("dim"), line: read("line"), free: read("free"), others: read("others"),
    panel: read("panel"), area: read("area"), focus: read("focus"), closed: read("closed"),
  };
}
