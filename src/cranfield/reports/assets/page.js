"use strict";
/* Theme, sorting, choice of metrics, downloads. What the page shows works without this script; this lets it be handled. */
document.documentElement.classList.add("scripted");
const DATA = JSON.parse(document.getElementById("data").textContent);

(function theme() {
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
})();

/* Folds are open on paper, and open when a link leads into them; the menu closes when it has been used. */
(function folding() {
  const folds = () => document.querySelectorAll("main details:not([open])");
  let closed = [];
  addEventListener("beforeprint", () => { closed = [...folds()]; for (const fold of closed) fold.open = true; });
  addEventListener("afterprint", () => { for (const fold of closed) fold.open = false; });
  addEventListener("hashchange", () => document.getElementById(location.hash.slice(1))?.closest("details")?.setAttribute("open", ""));
  const menu = document.querySelector(".menu");
  document.addEventListener("click", (event) => {
    if (menu?.open && (event.target.closest(".menu a") || !event.target.closest(".menu"))) menu.open = false;
  });
})();

(function sorting() {
  const key = (cell) => (cell.dataset.key === undefined ? null : cell.dataset.key);
  function sort(heading) {
    const table = heading.closest("table");
    const place = [...heading.parentNode.children].indexOf(heading);
    const numeric = heading.classList.contains("number");
    const now = heading.getAttribute("aria-sort");
    /* Numbers begin with the largest, names with A. */
    const order = now === "none" ? (numeric ? "descending" : "ascending") : now === "descending" ? "ascending" : "descending";
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows].map((row) => [row, key(row.cells[place])]);
    rows.sort(([, a], [, b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * (numeric ? a - b : a.localeCompare(b));
    });
    table.tBodies[0].append(...rows.map(([row]) => row));
    for (const other of heading.parentNode.children) other.setAttribute("aria-sort", other === heading ? order : "none");
  }
  for (const heading of document.querySelectorAll("table.sortable thead th")) {
    heading.querySelector("button").addEventListener("click", () => sort(heading));
  }
})();

(function choosing() {
  for (const box of document.querySelectorAll("input[data-shows]")) {
    const scope = box.closest("section");
    box.addEventListener("change", () => {
      for (const cell of scope.querySelectorAll("[data-group]")) {
        if (cell.dataset.group === box.dataset.shows) cell.hidden = !box.checked;
      }
    });
  }
})();

function save(name, kind, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/* What no spreadsheet takes for a formula, and what keeps a row a row. */
const csvCell = (value) => {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? "");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const kindOf = (name) => (name.endsWith(".csv") ? "text/csv;charset=utf-8" : "text/plain;charset=utf-8");

(function saving() {
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const inflated = (text) => new Response(new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const { saveFile, saveFigure } = button.dataset;
    if (saveFile) inflated(DATA.files[saveFile]).then((text) => save(saveFile, kindOf(saveFile), text));
    if (saveFigure) {
      const drawing = document.getElementById(`figure-${saveFigure}`).cloneNode(true);
      drawing.removeAttribute("id");
      save(`${saveFigure}.svg`, "image/svg+xml", new XMLSerializer().serializeToString(drawing));
    }
  });
})();
