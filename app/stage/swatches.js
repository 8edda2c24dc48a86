// The legend of a page, drawn on a canvas: for films, which have no HTML.
const LINE = 22, SWATCH = 24, GAP = 18;  // pixels: a line of text, a swatch, between two items

// What `legend` of `steinlab.ui.legend` has made, as [shape, text] of each item.
function itemsOf(legend) {
  const box = document.createElement("template");
  box.innerHTML = legend ?? "";
  return [...box.content.querySelectorAll("li")].map(li => [li.querySelector("svg").firstElementChild, li.textContent]);
}

// Places [x, line] of the items, in lines no wider than `width`, and the height of them all.
function placedItems(ctx, items, width) {
  const places = [];
  let x = 0, line = 0;
  for (const [, text] of items) {
    const wide = SWATCH + 6 + ctx.measureText(text).width;
    if (x && x + wide > width) [x, line] = [0, line + 1];
    places.push([x, line]);
    x += wide + GAP;
  }
  return {places, height: items.length && (line + 1) * LINE};
}

function drawShape(ctx, shape) {
  const facts = Object.fromEntries([...shape.attributes].map(({name, value}) => [name, value])), path = new Path2D(facts.d);
  if (shape.tagName === "rect") path.rect(0, 0, Number(facts.width), Number(facts.height));
  if (shape.tagName === "circle") path.arc(Number(facts.cx), Number(facts.cy), Number(facts.r), 0, 2 * Math.PI);
  if (facts["fill-opacity"]) {
    ctx.globalAlpha = Number(facts["fill-opacity"]);
    ctx.fill(path);
    ctx.globalAlpha = 1;
  }
  if (facts.stroke === "none") return;
  ctx.lineWidth = Number(facts["stroke-width"]);
  ctx.setLineDash(facts["stroke-dasharray"]?.split(" ").map(Number) ?? []);
  ctx.stroke(path);
  ctx.setLineDash([]);
}

// Draws items from a place on, in one colour.
function drawItems(ctx, items, places, left, top, ink) {
  ctx.fillStyle = ctx.strokeStyle = ink;
  ctx.textAlign = "left";
  items.forEach(([shape, text], k) => {
    const [x, line] = places[k];
    ctx.save();
    ctx.translate(left + x, top + line * LINE + 4);
    drawShape(ctx, shape);
    ctx.fillText(text, SWATCH + 6, 12);
    ctx.restore();
  });
}
