// Making elements, and writing times. Text is only ever set as text.

export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "class") made.className = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function byId(id) {
  return document.getElementById(id);
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function age(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "m"]]) {
    if (seconds >= 2 * size) return `${Math.floor(seconds / size)}${unit}`;
  }
  return `${seconds}s`;
}

export function clock(text) {
  return new Date(text).toLocaleTimeString([], { hour12: false });
}

export function count(number, what) {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}

// "nvidia.com/gpu" as people say it.
export function deviceWord(resource) {
  const word = resource.split("/").pop() ?? "";
  return word === "gpu" ? "GPU" : word || "device";
}
