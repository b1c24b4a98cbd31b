// A gang has the same colour wherever it is shown, and whenever: it follows from its name.

const HUES = 24;
const SHADES = { light: [[0.62, 0.17], [0.74, 0.13], [0.5, 0.15]], dark: [[0.72, 0.15], [0.6, 0.17], [0.82, 0.11]] };
const cache = new Map();

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

export function colourOf(gang, dark) {
  const key = `${dark} ${gang}`;
  let found = cache.get(key);
  if (!found) {
    const number = hash(gang);
    const [light, chroma] = SHADES[dark ? "dark" : "light"][Math.floor(number / HUES) % 3];
    const hue = ((number % HUES) * 360) / HUES;
    found = `oklch(${light} ${chroma} ${hue})`;
    if (cache.size > 20000) cache.clear();
    cache.set(key, found);
  }
  return found;
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
