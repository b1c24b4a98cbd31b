// Before anything is drawn, so that nobody is dazzled: the theme that was chosen, else the system's.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    // Where nothing may be kept, the system's choice is taken each time.
  }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
