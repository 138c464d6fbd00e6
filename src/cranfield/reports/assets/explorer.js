/* The decision explorer: picks rows of a table that was computed beforehand, and shows the order they give. */
(function explorer() {
  const data = DATA.explorer, home = document.getElementById("explorer-root");
  if (!data || !home) return;
  const floats = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const { systems, dimensions } = data, n = systems.length;
  const means = floats(data.means), p = floats(data.p);
  const rowOf = new Map(data.keys.map((key, row) => [key, row]));
  const strides = dimensions.map((_, d) => dimensions.slice(0, d).reduce((all, one) => all * one.options.length, 1));
  const keyOf = (choice) => choice.reduce((sum, place, d) => sum + place * strides[d], 0);
  const choiceOf = (row) => dimensions.map((one, d) => Math.floor(data.keys[row] / strides[d]) % one.options.length);
  const metricAt = dimensions.findIndex((one) => one.name === "metric");
  const start = data.start;
  let choice = choiceOf(start);

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  /* What becomes of the choices when one is made: where it was not computed with the others, these give way to those of
     the nearest computed combination that keeps it. */
  function chosen(d, place) {
    const wanted = choice.slice();
    wanted[d] = place;
    if (rowOf.has(keyOf(wanted))) return wanted;
    let best = wanted, fewest = Infinity;
    data.keys.forEach((_, row) => {
      const other = choiceOf(row);
      if (other[d] !== place) return;
      const changed = other.reduce((sum, one, k) => sum + (one !== wanted[k]), 0);
      if (changed < fewest) [best, fewest] = [other, changed];
    });
    return best;
  }
  function choose(d, place) {
    choice = chosen(d, place);
    show();
  }
  /* Which other choices give way to one, in words; empty where none does. */
  function givingWay(d, place) {
    const next = chosen(d, place);
    return dimensions.flatMap((one, k) => (k === d || next[k] === choice[k] ? [] : [`“${one.title}” to ${one.options[next[k]]}`])).join(", ");
  }

  const controls = make("form", { class: "controls", "aria-label": "Decisions" });
  const inputs = dimensions.map((one, d) => {
    if (one.options.length < 2) return null;
    if (one.options.length > 4 || one.options.some((text) => text.length > 16)) {
      const select = make("select", { "data-dimension": one.name },
        ...one.options.map((text, place) => make("option", { value: place }, text)));
      select.addEventListener("change", () => choose(d, +select.value));
      controls.append(make("label", { class: "field" }, make("span", { class: "name" }, one.title), select));
      return { set: (place) => { select.value = place; } };
    }
    const radios = one.options.map((_, place) => {
      const radio = make("input", { type: "radio", name: `explore-${one.name}`, value: place });
      radio.addEventListener("change", () => choose(d, place));
      return radio;
    });
    const segments = make("div", { class: "segments" },
      ...radios.map((radio, place) => make("label", {}, radio, ` ${one.options[place]}`)));
    const why = make("p", { class: "why", id: `why-${one.name}` });
    const group = { "data-dimension": one.name, "aria-describedby": why.id };
    controls.append(make("fieldset", group, make("legend", {}, one.title), segments, why));
    return {
      set: (place) => {
        radios[place].checked = true;
        /* Grey: to be had, but not together with the other choices. */
        const reasons = new Map();
        radios.forEach((radio, other) => {
          const changes = givingWay(d, other), reason = changes && `not measured with the other choices; it changes ${changes}`;
          radio.parentNode.classList.toggle("off", changes !== "");
          radio.parentNode.title = reason;
          if (reason) reasons.set(reason, [...(reasons.get(reason) || []), one.options[other]]);
        });
        why.textContent = [...reasons].map(([reason, options]) => `Grey: ${options.join(", ")}: ${reason}.`).join(" ");
        why.hidden = reasons.size === 0;
      },
    };
  });
  const reset = make("button", { type: "button", class: "reset" }, "Back to the decisions of this page");
  reset.addEventListener("click", () => { choice = choiceOf(start); show(); });
  const keep = make("button", { type: "button", class: "reset", id: "explorer-save" }, "explorer.csv");
  keep.addEventListener("click", () => save("explorer.csv", kindOf("explorer.csv"), shown()));
  controls.append(reset, keep);
  controls.addEventListener("submit", (event) => event.preventDefault());

  const said = make("p", { class: "said-live", role: "status", "aria-live": "polite" });
  const list = make("ol", { class: "ranking" });
  const items = systems.map((name) => {
    const parts = {
      place: make("span", { class: "place" }), move: make("span", { class: "move" }),
      fill: make("div", { class: "fill" }), value: make("span", { class: "value" }), said: make("span", { class: "said" }),
    };
    const item = make("li", { "data-system": name }, parts.place, parts.move, make("span", { class: "name", title: name }, name),
      make("div", { class: "track" }, parts.fill), parts.value, parts.said);
    list.append(item);
    return { item, ...parts };
  });
  home.append(said, controls, list);

  function ranked(row) {
    const lower = data.lower[choiceOf(row)[metricAt]];
    const values = Array.from(means.subarray(row * n, row * n + n), (value) => (Number.isNaN(value) ? null : value));
    const goodness = values.map((value) => (value === null ? -Infinity : lower ? -value : value));
    const order = systems.map((_, s) => s).sort((a, b) => goodness[b] - goodness[a] || a - b);
    return { values, goodness, order, places: order.reduce((all, s, k) => ((all[s] = k), all), []) };
  }

  /* Kendall's tau-b. */
  function tau(x, y) {
    let agree = 0, tiedX = 0, tiedY = 0, pairs = 0;
    for (let a = 0; a < n; a++) for (let b = a + 1; b < n; b++) {
      const dx = Math.sign(x[a] - x[b]) || 0, dy = Math.sign(y[a] - y[b]) || 0;
      agree += dx * dy; tiedX += dx === 0; tiedY += dy === 0; pairs++;
    }
    const size = Math.sqrt((pairs - tiedX) * (pairs - tiedY));
    return size > 0 ? agree / size : NaN;
  }
  const two = (value) => (Number.isNaN(value) ? "not defined" : value.toFixed(2).replace("-", "−"));
  const pText = (value) => (value < 0.0001 ? "p < 0.0001" : `p = ${Number(value.toPrecision(3))}`);

  const before = ranked(start);
  function show() {
    const row = rowOf.get(keyOf(choice)), now = ranked(row);
    inputs.forEach((input, d) => input && input.set(choice[d]));
    const finite = now.values.filter((value) => value !== null);
    const top = Math.max(...finite, 0) || 1, best = now.order[0];
    const tested = systems.some((_, s) => !Number.isNaN(p[row * n + s]));
    const level = [];
    const focus = document.activeElement;
    now.order.forEach((s, k) => {
      const one = items[s], value = now.values[s], chance = p[row * n + s];
      const moved = before.places[s] - k;
      one.place.textContent = k + 1;
      one.move.textContent = moved === 0 ? "" : moved > 0 ? `▲ ${moved}` : `▼ ${-moved}`;
      one.move.className = `move ${moved > 0 ? "up" : moved < 0 ? "down" : ""}`;
      one.move.setAttribute("aria-label", moved === 0 ? "same place" : `${Math.abs(moved)} places ${moved > 0 ? "up" : "down"}`);
      one.value.textContent = value === null ? "–" : value.toFixed(4);
      one.fill.style.width = `${value === null ? 0 : Math.max(0, (100 * value) / top)}%`;
      const same = s !== best && tested && !(chance < data.alpha);
      if (same) level.push(systems[s]);
      one.item.className = s === best || same ? "level" : "";
      one.said.textContent = s === best ? "best" : Number.isNaN(chance) ? "" : same ? `n.s., ${pText(chance)}` : pText(chance);
      list.append(one.item);
    });
    if (focus && focus !== document.activeElement) focus.focus();
    const equal = finite.length > 1 && finite.every((value) => value === finite[0]);
    const parts = [];
    if (!finite.length) parts.push("No system has a value under these decisions.");
    else if (equal) parts.push("All systems have the same value: these decisions say nothing about their order.");
    else {
      parts.push(`${systems[best]} leads under these decisions`
        + (!tested ? "." : level.length === 0 ? ", significantly better than all others."
          : level.length < 5 ? `; not significantly better than ${level.join(", ")}.`
          : `; not significantly better than ${level.length} others.`));
      if (n > 1) parts.push(`Kendall's tau with the order of this page: ${two(tau(now.goodness, before.goodness))}.`);
      if (!tested && n > 1) parts.push("There is no paired test of this kind of average.");
    }
    if (data.truth && finite.length) parts.push(`With the true order: ${two(tau(now.goodness, data.truth))}.`);
    said.textContent = parts.join(" ");
  }

  /* The table on show: a row a system, with the decisions it was ordered by. Numbers have the seven digits they hold. */
  function shown() {
    const row = rowOf.get(keyOf(choice)), now = ranked(row), taken = dimensions.map((one, d) => one.options[choice[d]]);
    const digits = (value) => (value === null || Number.isNaN(value) ? "" : Number(value.toPrecision(7)));
    const lines = now.order.map((s, k) => [k + 1, systems[s], digits(now.values[s]), digits(p[row * n + s]), ...taken]);
    return [["place", "system", "average", "p_corrected", ...dimensions.map((one) => one.name)], ...lines]
      .map((line) => `${line.map(csvCell).join(",")}\n`).join("");
  }
  show();
})();
