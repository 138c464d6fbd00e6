/* Figures are drawn beforehand, to be seen without a script and on paper. When one is pointed at, Vega draws it anew
   from the same definition, and its marks tell their numbers. The drawing that was there stays the one to download. */
(function figures() {
  const options = {
    ast: true, /* expressions are interpreted: the policy of this page allows no eval */
    actions: false, renderer: "svg", hover: false, defaultStyle: false,
    tooltip: { id: "tip", disableDefaultStyle: true, theme: "page" },
  };
  const narrow = window.matchMedia("(max-width: 46rem)").matches;
  function wake(figure) {
    const drawing = figure.querySelector(".drawing");
    const defined = JSON.parse(figure.querySelector(".definition").textContent);
    /* What stands beside the plot, its labels and its key, stays as wide as it was drawn. */
    if (fits(defined)) {
      const wanted = defined.width + drawing.clientWidth - drawing.querySelector("svg").getAttribute("width");
      defined.width = Math.max(80, wanted);
      drawing.classList.add("fitted");
    }
    const live = document.createElement("div");
    live.className = "live";
    live.hidden = true;
    drawing.append(live);
    vegaEmbed(live, defined, options).then(
      () => { live.hidden = false; drawing.classList.add("awake"); },
      () => live.remove(), /* what cannot be drawn anew stays as it is */
    );
  }
  /* On a phone a single plot is drawn anew as wide as the screen, so that its labels keep their size. */
  function fits(defined) {
    return narrow && defined.width <= 900;
  }
  if (!window.vegaEmbed) return;
  for (const definition of document.querySelectorAll("figure .definition")) {
    const figure = definition.closest("figure");
    const fold = figure.closest("details:not([open])");
    if (!fits(JSON.parse(definition.textContent))) figure.addEventListener("pointerenter", () => wake(figure), { once: true });
    else if (fold) fold.addEventListener("toggle", () => wake(figure), { once: true }); /* a folded figure has no width */
    else wake(figure);
  }
})();
