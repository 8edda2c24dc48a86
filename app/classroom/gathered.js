// The answers as the lecturer sees them: the picture, and a list in which each can be hidden.
export function render({model, el}) {
  const picture = document.createElement("div"), list = document.createElement("details"), name = document.createElement("summary");
  list.append(name);
  el.append(picture, list);
  const rows = document.createElement("div");
  list.append(rows);
  function draw() {
    const {question, gathered, listed} = model.told;
    if (!question) return;
    drawGathered(picture, question, gathered, Math.max(240, el.clientWidth || 380), model.dark);
    name.textContent = `List of the answers (${listed.length})`;
    rows.replaceChildren(...listed.map(([who, said, result, hidden], k) => {
      const row = document.createElement("label"), box = document.createElement("input"), text = document.createElement("span");
      Object.assign(box, {type: "checkbox", checked: !hidden, title: "The class sees it"});
      box.addEventListener("change", () => model.send_msg({hide: k, on: !box.checked}));
      text.textContent = `${who || "no name"}: ${typeof said === "number" ? brevity(said) : said}${result === null ? "" : `, variance ${brevity(result)}`}`;
      row.classList.toggle("hidden", hidden);
      row.append(box, text);
      return row;
    }));
  }
  const wider = new ResizeObserver(draw);
  wider.observe(el);
  model.on(["told", "dark"], draw);
  model.on("remove", () => wider.disconnect());
  draw();
}
