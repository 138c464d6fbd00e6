/* The matrix of all pairs of systems, for the metric that the reader picks. */
(function pairs() {
  const data = DATA.pairs, home = document.getElementById("pairs-root");
  if (!data || !home) return;
  const select = document.getElementById("pairs-metric"), show = document.getElementById("pairs-show");
  const percent = (v) => signed(100 * v, Math.abs(v) < 0.0995 ? 1 : 0);
  const text = { p: (v) => (v < 0.0001 ? "<0.0001" : String(Number(v.toPrecision(3)))), difference: (v) => signed(v, 4), relative: (v) => `${percent(v)} %`, effect: (v) => signed(v, 2) };
  const end = { difference: (v) => signed(v, 4), relative: percent };
  const signed = (v, digits) => `${v < 0 ? "−" : "+"}${Math.abs(v).toFixed(digits)}`;
  const cell = (tag, content, kind) => {
    const made = document.createElement(tag);
    made.textContent = content;
    if (kind) made.className = kind;
    return made;
  };
  // The value of a pair and the ends of its interval; turned round where the row is the second system of the pair.
  function values(pair, what, turned) {
    const [, , p, effect, difference, lower, upper, relative, relativeLower, relativeUpper] = pair;
    const shown = { p: [p], effect: [effect], difference: [difference, lower, upper], relative: [relative, relativeLower, relativeUpper] }[what];
    if (!turned || what === "p") return shown;
    const other = (v) => (v === null ? null : what === "relative" ? (v > -1 ? 1 / (1 + v) - 1 : null) : -v);
    const [value, low, high] = shown.map(other);
    return [value, high, low];
  }
  function draw() {
    const one = data.metrics[select.value], what = show.value;
    const table = document.createElement("table");
    table.className = "matrix";
    table.append(cell("caption", `${one.name}: ${show.selectedOptions[0].textContent}, row against column; best system first.`));
    const head = table.createTHead().insertRow(), body = table.createTBody();
    head.append(cell("td", ""));
    for (const s of one.order) { const th = cell("th", data.systems[s]); th.scope = "col"; th.title = data.systems[s]; head.append(th); }
    const found = new Map(one.pairs.map((pair) => [pair[0] * data.systems.length + pair[1], pair]));
    for (const a of one.order) {
      const row = body.insertRow(), th = cell("th", data.systems[a]);
      th.scope = "row";
      row.append(th);
      for (const b of one.order) {
        const there = found.get(a * data.systems.length + b), back = found.get(b * data.systems.length + a);
        const pair = there || back;
        if (a === b || !pair) { row.append(cell("td", a === b ? "" : "–", a === b ? "self" : "")); continue; }
        const winner = pair[pair.length - 1], [value, low, high] = values(pair, what, !there);
        const made = cell("td", value === null ? "–" : text[what](value), winner === a ? "better" : winner === b ? "worse" : "");
        if (what in end && low !== null && high !== null) made.append(cell("small", `[${end[what](low)}, ${end[what](high)}]`));
        made.title = `${data.systems[a]} ${winner === a ? "is better than" : winner === b ? "is worse than" : "does not differ significantly from"} ${data.systems[b]}`;
        row.append(made);
      }
    }
    home.replaceChildren(table);
  }
  select.addEventListener("change", draw);
  show.addEventListener("change", draw);
  draw();
})();
