/* The audit: the reader picks a pair of systems, leaves options out, and looks at single cells. */
(function audit() {
  const data = DATA.audit, home = document.getElementById("audit-root");
  if (!data || !home) return;
  const buffer = (text) => {
    const letters = atob(text), bytes = new Uint8Array(letters.length);
    for (let k = 0; k < letters.length; k++) bytes[k] = letters.charCodeAt(k);
    return bytes.buffer;
  };
  const { systems, decisions, start } = data;
  const optionOf = new Uint16Array(buffer(data.cells)), universe = new Uint32Array(buffer(data.universe));
  const users = new Uint32Array(buffer(data.users)), averages = new Float64Array(buffer(data.averages));
  const ranks = new Uint8Array(buffer(data.ranks)), weights = data.weights && new Float64Array(buffer(data.weights));
  const heading = `h${home.dataset.level}`, nCells = universe.length, nUniverses = users.length, nDecisions = decisions.length;
  const weightOf = (cell) => (weights ? weights[cell] : 1);
  const INK = "#1c2430", MUTED = "#5c6675", RULE = "#dfe3e8", FIRST = "#0072b2", SECOND = "#d55e00";

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const mark = (tag, attributes = {}, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const minus = (text) => text.replace("-", "−");
  const signed = (value, digits) => minus(`${value < 0 ? "" : "+"}${value.toFixed(digits)}`);
  const pText = (p) => (p < 0.0001 ? "p < 0.0001" : `p = ${Number(p.toPrecision(3))}`);
  const count = (n) => n.toLocaleString("en-US");
  /* 0 % and 100 % stand only for exact values. */
  const percent = (share) => (Number.isNaN(share) ? "–" : share > 0 && share < 0.005 ? "<1 %"
    : share < 1 - 1e-9 && share > 0.995 ? ">99 %" : `${Math.round(100 * share)} %`);

  /* Pairs are unpacked when they are first chosen. */
  const unpacked = new Map();
  function pairOf(number) {
    if (!unpacked.has(number)) {
      const own = data.pairs[number];
      unpacked.set(number, { ...own, d_z: new Float32Array(buffer(own.d_z)), p: new Float32Array(buffer(own.p)),
        result: new Uint8Array(buffer(own.result)) });
    }
    return unpacked.get(number);
  }
  const numberOf = new Map(data.pairs.map((pair, number) => [Math.min(...pair.systems) * systems.length + Math.max(...pair.systems), number]));

  let pair = pairOf(0), order = [], selected = start;
  const ticked = decisions.map((decision) => decision.options.map(() => true));
  const lead = (cell) => (pair.result[universe[cell]] % 3) - 1;
  const significant = (cell) => pair.result[universe[cell]] > 2;
  const names = () => pair.systems.map((system) => systems[system]);

  /* ---- what stands in the section ---- */
  const said = make("p", { class: "said-live", role: "status", "aria-live": "polite" });
  const frame = make("div", { class: "drawing curve" });
  const caption = make("figcaption", {}, make("span", { class: "words" }), " ",
    make("button", { type: "button", "data-save-figure": "audit-curve" }, "audit-curve.svg"));
  const step = (label, move) => {
    const button = make("button", { type: "button", class: "reset" }, label);
    button.addEventListener("click", move);
    return button;
  };
  const detail = make("div", { class: "cell", "aria-live": "polite" });
  const steps = make("p", { class: "steps" },
    step("Starting point", () => { if (order.includes(start)) choose(start); }),
    step("◀ Lower d_z", () => go(-1)), step("Higher d_z ▶", () => go(1)));
  const everything = step("All options", () => {
    for (const options of ticked) options.fill(true);
    filter();
  });
  const keep = step("audit-cells.csv", () => save("audit-cells.csv", kindOf("audit-cells.csv"), csv()));
  const map = make("table", { class: "map" });
  home.append(make("figure", {}, frame, caption), ...[document.getElementById("audit-pair")].filter(Boolean),
    make("details", {}, make("summary", {}, "Set-up by set-up"), steps, detail),
    make("details", {}, make("summary", {}, "Option by option"),
      make("p", {}, "Untick an option to leave its set-ups out, here and in the curve. For each option, the bar shows who leads in more of its set-ups. If another system leads under an option, the option need not be the cause: the single changes below leave everything else unchanged."),
      make("p", { class: "steps" }, everything, keep),
      make("div", {}, said, make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Option by option" }, map))));

  /* ---- the cells on show ---- */
  function filter() {
    const kept = [];
    for (let cell = 0; cell < nCells; cell++) {
      let shown = true;
      for (let d = 0; d < nDecisions && shown; d++) shown = ticked[d][optionOf[cell * nDecisions + d]];
      if (shown) kept.push(cell);
    }
    const d_z = pair.d_z;
    order = kept.sort((a, b) => d_z[universe[a]] - d_z[universe[b]] || a - b);
    if (!order.includes(selected)) selected = order.includes(start) ? start : order[0];
    draw();
    showOptions();
    showDetail();
    tell();
  }

  function shares(cells) {
    const sums = { all: 0, first: 0, second: 0, firstSure: 0, secondSure: 0 };
    for (const cell of cells) {
      const weight = weightOf(cell), who = lead(cell), sure = significant(cell);
      sums.all += weight;
      if (who > 0) { sums.first += weight; if (sure) sums.firstSure += weight; }
      if (who < 0) { sums.second += weight; if (sure) sums.secondSure += weight; }
    }
    for (const key of ["first", "second", "firstSure", "secondSure"]) sums[key] /= sums.all;
    return sums;
  }

  function tell() {
    if (!order.length) { said.textContent = "No set-up is left: tick an option of every decision."; return; }
    const [first, second] = names(), share = shares(order), some = order.length < nCells;
    said.textContent = `Of the ${count(order.length)} ${some ? `set-ups that you left in (of ${count(nCells)})` : order.length === 1 ? "set-up" : "set-ups"}, `
      + `${first} leads in ${percent(share.first)} (significantly in ${percent(share.firstSure)}) and ${second} in ${percent(share.second)} `
      + `(significantly in ${percent(share.secondSure)}). A share of set-ups is not a probability${some ? ", and leaving options out until the result pleases makes it worthless" : ""}.`;
  }

  /* ---- the curve and the matrix of options ---- */
  let place = () => 0, cursor = null, drawnFor = 0;
  function draw() {
    drawnFor = frame.clientWidth;
    const [first, second] = names();
    const width = Math.max(280, frame.clientWidth || home.clientWidth), narrow = width < 560;
    /* A label is never cut: one that does not fit beside its row stands above it. */
    const letter = 6.1, longest = Math.max(...decisions.flatMap((one) => one.labels.map((label) => label.length)), 8);
    const above = letter * longest + 14 > (narrow ? 0.4 : 0.32) * width;
    const left = above ? 44 : Math.round(letter * longest + 14), right = width - 8;
    const top = 16, bottom = 150, row = 13, n = order.length;
    const values = order.map((cell) => pair.d_z[universe[cell]]);
    let low = Math.min(0, ...extremes(values)), high = Math.max(0, ...extremes(values));
    if (low === high) [low, high] = [-1, 1];
    const margin = 0.05 * (high - low);
    const y = (value) => bottom - ((value - low + margin) / (high - low + 2 * margin)) * (bottom - top);
    place = (k) => left + ((k + 0.5) * (right - left)) / Math.max(n, 1);
    const drawing = mark("svg", { id: "figure-audit-curve", xmlns: "http://www.w3.org/2000/svg", tabindex: "0", role: "slider",
      "aria-label": "Set-ups in the order of d_z", "aria-valuemin": 1, "aria-valuemax": Math.max(n, 1), "font-family": "system-ui, sans-serif", "font-size": 11 });
    for (const tick of ticks(low - margin, high + margin)) {
      drawing.append(mark("line", { x1: left, x2: right, y1: y(tick), y2: y(tick), stroke: tick === 0 ? INK : RULE, "stroke-dasharray": tick === 0 ? "4 3" : "none" }),
        mark("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end", fill: MUTED }, minus(`${Number(tick.toPrecision(6))}`)));
    }
    drawing.append(mark("text", { x: left, y: top - 2, fill: INK }, "d_z"));
    const dots = ["", "", ""];
    order.forEach((cell, k) => {
      const kind = significant(cell) ? (lead(cell) > 0 ? 1 : lead(cell) < 0 ? 2 : 0) : 0;
      dots[kind] += `M${place(k).toFixed(1)} ${y(values[k]).toFixed(1)}h0`;
    });
    const larger = n < 100 ? 2 : 0;
    [[MUTED, 2.6 + larger], [FIRST, 5 + larger], [SECOND, 5 + larger]].forEach(([stroke, size], kind) => {
      if (dots[kind]) drawing.append(mark("path", { d: dots[kind], stroke, "stroke-width": size, "stroke-linecap": "round", fill: "none" }));
    });
    const origin = order.indexOf(start);
    if (origin >= 0) {
      drawing.append(mark("path", { d: `M${place(origin)} ${y(values[origin]) - 7}l6 7l-6 7l-6 -7z`, stroke: INK, "stroke-width": 1.5,
        fill: significant(start) ? (lead(start) > 0 ? FIRST : SECOND) : MUTED }));
    }
    const height = matrix(drawing, left, right, bottom + 12, row, above);
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    drawing.setAttribute("width", width);
    drawing.setAttribute("height", height);
    cursor = mark("line", { stroke: INK, "stroke-width": 1, y1: top, y2: height - 4 });
    drawing.append(cursor);
    drawing.addEventListener("click", (event) => {
      const box = drawing.getBoundingClientRect(), x = ((event.clientX - box.left) * width) / box.width;
      const k = Math.floor(((x - left) / (right - left)) * n);
      if (x >= left && k >= 0 && k < n) choose(order[k]);
    });
    drawing.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -Math.ceil(n / 20), PageUp: Math.ceil(n / 20), Home: -n, End: n }[event.key];
      if (move) { event.preventDefault(); go(move); }
    });
    const focused = frame.contains(document.activeElement);
    frame.replaceChildren(drawing);
    if (focused) drawing.focus();
    caption.querySelector(".words").replaceChildren(make("i", { class: "first" }), `${first} significantly better `, make("i", { class: "second" }), `${second} significantly better `,
      make("i", { class: "unsure" }), `not significant (small points). Above 0 ${first} leads. The diamond is the starting point. Click a set-up, or use the arrow keys, to see its decisions.`);
  }

  function extremes(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
    return values.length ? [low, high] : [0, 0];
  }
  function ticks(low, high) {
    const raw = (high - low) / 5, power = 10 ** Math.floor(Math.log10(raw));
    const size = [1, 2, 5, 10].map((k) => k * power).find((one) => one >= raw);
    const all = [];
    for (let k = Math.ceil(low / size); k * size <= high; k++) all.push(k * size);
    return all;
  }

  /* One row per option. Where several cells share a column, the darkness says how many of them have the option. */
  function matrix(drawing, left, right, top, row, above) {
    const n = order.length, columns = Math.max(1, Math.min(n, Math.floor(right - left))), wide = (right - left) / columns;
    const inColumn = new Uint32Array(columns);
    for (let k = 0; k < n; k++) inColumn[Math.floor((k * columns) / n)]++;
    let y = top;
    decisions.forEach((decision, d) => {
      drawing.append(mark("text", { x: above ? 4 : left, y: y + 9, fill: MUTED, "font-size": 10 }, decision.name));
      y += 13;
      const having = decision.options.map(() => new Uint32Array(columns));
      for (let k = 0; k < n; k++) having[optionOf[order[k] * nDecisions + d]][Math.floor((k * columns) / n)]++;
      decision.options.forEach((option, o) => {
        const paths = ["", "", "", ""], ink = ticked[d][o] ? INK : MUTED;
        const beside = above ? { x: left, y: y + 10 } : { x: left - 6, y: y + row - 3, "text-anchor": "end" };
        drawing.append(mark("text", { ...beside, fill: ink }, decision.labels[o], mark("title", {}, `${decision.name}: ${option}`)));
        if (above) y += 13;
        for (let c = 0; c < columns; c++) {
          if (having[o][c]) paths[Math.ceil((4 * having[o][c]) / inColumn[c]) - 1] += `M${(left + (c + 0.5) * wide).toFixed(1)} ${y + 2}v${row - 4}`;
        }
        paths.forEach((path, level) => {
          if (path) drawing.append(mark("path", { d: path, stroke: INK, "stroke-width": (wide > 3 ? 0.8 * wide : wide).toFixed(2), opacity: 0.22 + 0.2 * level }));
        });
        y += row;
      });
      y += 3;
    });
    return y + 4;
  }

  /* ---- one cell ---- */
  function choose(cell) { selected = cell; showDetail(); }
  function go(move) {
    if (!order.length) return;
    choose(order[Math.max(0, Math.min(order.length - 1, order.indexOf(selected) + move))]);
  }
  function showDetail() {
    const k = order.indexOf(selected), drawing = frame.firstChild;
    cursor.setAttribute("visibility", k < 0 ? "hidden" : "visible");
    if (k < 0) { detail.replaceChildren(); return; }
    cursor.setAttribute("x1", place(k));
    cursor.setAttribute("x2", place(k));
    const u = universe[selected], [a, b] = pair.systems, [first, second] = names();
    const [mine, yours] = [averages[a * nUniverses + u], averages[b * nUniverses + u]], difference = mine - yours;
    const who = lead(selected), relative = yours === 0 ? "" : `, ${signed((100 * difference) / Math.abs(yours), 1)} %`;
    const verdict = who === 0 ? `${first} and ${second} are equal` : `${who > 0 ? first : second} leads ${who > 0 ? second : first}${significant(selected) ? " significantly" : ", not significantly"}`;
    const numbers = `${first} ${mine.toFixed(4)}, ${second} ${yours.toFixed(4)}; difference ${signed(difference, 4)}${relative}; d_z ${signed(pair.d_z[u], 3)}; ${pText(pair.p[u])} by a single t-test over users (level ${data.alpha}); ${count(users[u])} users.`;
    const lines = decisions.flatMap((decision, d) => {
      const own = optionOf[selected * nDecisions + d], usual = optionOf[start * nDecisions + d];
      const changed = own === usual ? "" : ` instead of ${decision.options[usual]}`;
      return [make("dt", { title: decision.says }, decision.name), make("dd", { class: changed ? "changed" : "" }, make("b", {}, decision.options[own]), changed)];
    });
    const words = decisions.map((decision, d) => decision.words[optionOf[selected * nDecisions + d]]).join("; ");
    const ranked = systems.map((system, s) => [ranks[s * nUniverses + u], averages[s * nUniverses + u], system])
      .sort((x, y) => x[0] - y[0]).slice(0, 10).map(([rank, value, system]) => `${rank}. ${system} ${value.toFixed(4)}`);
    const alike = universe.reduce((sum, other) => sum + (other === u), 0);
    const shared = alike > 1 ? ` ${alike} set-ups have these numbers: an option that does not apply repeats the value.` : "";
    detail.replaceChildren(
      make(heading, {}, `${selected === start ? "The starting point: set-up" : "Set-up"} ${count(k + 1)} of ${count(order.length)} by d_z`),
      make("p", {}, make("b", {}, `${verdict}.`), ` ${numbers}${shared}`),
      make("p", { class: "words" }, `${words}.`),
      make("dl", { class: "card" }, ...lines),
      make("p", {}, `All systems here: ${ranked.join(", ")}${data.of_systems > ranked.length ? ` and ${data.of_systems - ranked.length} more` : ""}.`));
    drawing.setAttribute("aria-valuenow", k + 1);
    drawing.setAttribute("aria-valuetext", `${verdict}, d_z ${pair.d_z[u].toFixed(3)}`);
  }

  /* ---- option by option ---- */
  const rows = [];
  {
    const head = map.createTHead().insertRow(), body = map.createTBody();
    for (const [title, kind] of [["option", ""], ["", "track-cell"], ["", "number"], ["", "number extra"], ["significant", "number extra"], ["set-ups", "number extra"]]) head.append(make("th", { scope: "col", class: kind }, title));
    decisions.forEach((decision, d) => {
      body.append(make("tr", { class: "group" }, make("th", { colspan: 6, scope: "rowgroup", title: decision.says }, `${decision.name} `, make("small", {}, decision.kind))));
      decision.options.forEach((option, o) => {
        const box = make("input", { type: "checkbox" });
        box.addEventListener("change", () => { ticked[d][o] = box.checked; filter(); });
        const fill = make("div", { class: "fill" }), track = make("div", { class: "track half" }, fill);
        const values = ["number", "number extra", "number extra", "number extra"].map((kind) => make("td", { class: kind }));
        const isStart = optionOf[start * nDecisions + d] === o;
        const row = make("tr", { "data-decision": decision.name, "data-option": option }, make("th", { scope: "row", title: option }, make("label", {}, box, ` ${decision.labels[o]}`, isStart ? make("span", { class: "is-start", title: "the starting point" }, " ◆") : "")),
          make("td", { class: "track-cell" }, track), ...values);
        body.append(row);
        rows.push({ d, o, row, box, fill, values });
      });
    });
  }
  function showOptions() {
    const [first, second] = names(), titles = map.tHead.rows[0].cells;
    titles[2].textContent = `${first} leads`;
    titles[3].textContent = `${second} leads`;
    const groups = rows.map(() => []), rowAt = new Map(rows.map((one, r) => [one.d * 65536 + one.o, r]));
    for (const cell of order) for (let d = 0; d < nDecisions; d++) groups[rowAt.get(d * 65536 + optionOf[cell * nDecisions + d])].push(cell);
    rows.forEach(({ d, o, row, box, fill, values }, r) => {
      const share = shares(groups[r]), more = share.first >= share.second, lean = (share.first - share.second) / 2;
      box.checked = ticked[d][o];
      row.classList.toggle("off", !groups[r].length);
      fill.className = `fill ${more ? "first" : "second"}`;
      fill.style.width = `${groups[r].length ? 100 * Math.abs(lean) : 0}%`;
      fill.style.left = `${more ? 50 : 50 - 100 * Math.abs(lean || 0)}%`;
      const texts = groups[r].length ? [percent(share.first), percent(share.second), percent(share.firstSure + share.secondSure), count(groups[r].length)] : ["–", "–", "–", "0"];
      values.forEach((value, k) => { value.textContent = texts[k]; });
    });
  }

  /* ---- what is said of the pair ---- */
  const byId = (id) => document.getElementById(id);
  function showPair() {
    const [answer, ...rest] = pair.sentences;
    byId("audit-large").textContent = answer;
    byId("audit-rest").replaceChildren(make("ul", { class: "notes" }, ...rest.map((sentence) => make("li", {}, sentence))));
    for (const part of document.querySelectorAll("[data-opening]")) part.textContent = pair.openings[part.dataset.opening] ?? "";
    byId("audit-facts").replaceChildren(...pair.facts.map(([number, what]) => make("div", {}, make("b", {}, number), make("span", {}, what))));
    for (const part of document.querySelectorAll(".of-pair")) refill(part, pair.tables[part.dataset.table]);
    showInfluence();
  }
  function refill(part, own) {
    const table = part.querySelector("table"), empty = part.querySelector(".empty"), headings = [...table.tHead.rows[0].cells];
    table.caption.textContent = own.caption;
    part.firstChild.hidden = own.rows.length === 0;
    if (empty) empty.hidden = own.rows.length > 0;
    headings.forEach((heading, k) => { heading.querySelector("button").textContent = own.header[k]; heading.setAttribute("aria-sort", "none"); });
    table.tBodies[0].replaceChildren(...own.rows.map((line) => make("tr", {}, ...line.map((value, k) => {
      const numeric = headings[k].classList.contains("number"), cell = make(k ? "td" : "th", numeric ? { class: "number" } : k ? {} : { scope: "row" }, value);
      const number = parseFloat(value.replace(/[<>+,]/g, ""));
      if (!numeric) cell.dataset.key = value; else if (!Number.isNaN(number)) cell.dataset.key = number;
      return cell;
    }))));
  }
  function showInfluence() {
    const decided = pair.influence.filter(([, kind]) => kind !== "chance"), chance = pair.influence.filter(([, kind]) => kind === "chance");
    const floor = chance.reduce((sum, [, , share]) => sum + share, 0), top = Math.max(0.01, floor, ...decided.map(([, , , , upper]) => upper));
    const scaled = (share) => `${(100 * Math.max(0, share)) / top}%`;
    const line = (name, kind, share, lower, upper) => {
      const fill = make("div", { class: kind === "chance" ? "fill second" : "fill first" }), ends = make("div", { class: "ends" }), track = make("div", { class: "track" }, fill);
      fill.style.width = scaled(share);
      if (lower !== undefined) { ends.style.left = scaled(lower); ends.style.width = scaled(upper - lower); track.append(ends); }
      if (chance.length) { const edge = make("div", { class: "floor" }); edge.style.left = scaled(floor); track.append(edge); }
      const interval = lower === undefined ? "" : ` [${percent(lower)}, ${percent(upper)}]`;
      return make("li", {}, make("span", { class: "name", title: name }, name), track, make("span", { class: "value" }, `${percent(share)}${interval}`));
    };
    const noise = chance.length ? [line(`noise floor (${chance.map(([name]) => name).join(", ")})`, "chance", floor)] : [];
    byId("audit-bars").replaceChildren(make("ol", {}, ...decided.map((own) => line(...own)), ...noise),
      make("p", { class: "key" }, chance.length ? "Shares of the variance of d_z over all set-ups, with 95 % intervals over resampled users; the dashed line is the noise floor. Leaving options out above does not change them." : "Shares of the variance of d_z over all set-ups, with 95 % intervals over resampled users. No chance option was opened, so the noise floor is not known. Leaving options out above does not change them."));
  }

  /* The cells on show, with their options and numbers. */
  function csv() {
    const [first, second] = names(), [a, b] = pair.systems, digits = (value) => Number(value.toPrecision(7));
    const lines = order.map((cell) => {
      const u = universe[cell], who = lead(cell);
      return [cell, u, ...decisions.map((decision, d) => decision.options[optionOf[cell * nDecisions + d]]), users[u], first, second,
        averages[a * nUniverses + u], averages[b * nUniverses + u], digits(pair.d_z[u]), digits(pair.p[u]), who > 0 ? first : who < 0 ? second : "", significant(cell)];
    });
    return [["cell", "universe", ...decisions.map((decision) => decision.name), "users", "system_a", "system_b", "average_a", "average_b", "d_z", "p", "leader", "significant"], ...lines]
      .map((line) => `${line.map(csvCell).join(",")}\n`).join("");
  }

  const selects = [byId("audit-first"), byId("audit-second")];
  if (selects[0]) {
    let before = [0, 1];
    selects.forEach((select, k) => {
      select.value = k;
      select.addEventListener("change", () => {
        /* The same system twice: the other list takes what this one had. */
        if (selects[0].value === selects[1].value) selects[1 - k].value = before[k];
        before = selects.map((one) => +one.value);
        pair = pairOf(numberOf.get(Math.min(...before) * systems.length + Math.max(...before)));
        showPair();
        filter();
      });
    });
  }
  new ResizeObserver(() => {
    if (frame.clientWidth !== drawnFor) { draw(); showDetail(); }
  }).observe(frame);
  showInfluence();
  filter();
})();
