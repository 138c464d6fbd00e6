/* Figures are drawn beforehand, to be seen without a script and on paper. When one is pointed at, Vega draws it anew
   from the same definition, and its marks tell their numbers. The drawing that was there stays the one to download. */
(function figures() {
  const options = {
    ast: true, /* expressions are interpreted: the policy of this page allows no eval */
    actions: false, renderer: "svg", hover: false, defaultStyle: false,
    tooltip: { id: "tip", disableDefaultStyle: true, theme: "page" },
  };
  function wake(event) {
    const figure = event.currentTarget, drawing = figure.querySelector(".drawing");
    const live = document.createElement("div");
    live.className = "live";
    live.hidden = true;
    drawing.append(live);
    vegaEmbed(live, JSON.parse(figure.querySelector(".definition").textContent), options).then(
      () => { live.hidden = false; drawing.classList.add("awake"); },
      () => live.remove(), /* what cannot be drawn anew stays as it is */
    );
  }
  if (!window.vegaEmbed) return;
  for (const definition of document.querySelectorAll("figure .definition")) {
    definition.closest("figure").addEventListener("pointerenter", wake, { once: true });
  }
})();
