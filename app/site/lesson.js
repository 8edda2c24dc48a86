// A lesson: its texts are those of page Lessons, and move the figures of their part.
window.steinlabMath = new Promise((done) => addEventListener("load", done)).then(bokeh).then(load);  // after what moves
for (const section of document.querySelectorAll("main > section")) {
  const here = () => [...section.querySelectorAll("figure")].map((root) => figures[root.id]).filter(Boolean), tells = [];
  const rows = () => Object.assign({}, ...here().map((one) => one.rows).reverse());
  const hear = (message) => {
    if (message.run) runs(section.querySelector("figure[data-figure]"));
    else if (message.light !== undefined) here().forEach((one) => { if (one.player) one.player.model.lit = message.light; });
    else rows()[message.dial].turn(message.steps ?? 0, message.value);
  };
  section.addEventListener("input", () => tells.forEach((tell) => tell()));
  addEventListener("steinlab-turned", () => tells.forEach((tell) => tell()));
  for (const el of section.querySelectorAll(".text")) {
    const html = el.firstElementChild.innerHTML;
    const model = {
      html, lesson: true, terms: true, send_msg: hear, on: (name, tell) => name === "dials" && tells.push(tell),
      get dials() { return Object.fromEntries(Object.entries(rows()).map(([name, row]) => [name, row.facts()])); },
    };
    el.replaceChildren();
    renderText({ model, el });
  }
}
predictions(document.querySelector("main > .foot"));
