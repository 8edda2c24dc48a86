// The replay of a sweep: its chart, with those of its runs that had come by then. A frame is their count.
const shownAt = (frames, k) => [frames[k]];
const momentOf = count => `${count} of ${REPLAY.cells.length} runs`;
const decoded = async ({cells}) => [0, ...cells.map((_, k) => k + 1)];
const LONGEST = 240;  // frames that a film of few runs has

// cells: [point, series, x, y, low, high, fill, r, cross] in the order of the runs; the newest of a point counts.
function render({model, el}) {
  const picture = svgNode(el, "svg", {}), hook = window.steinchart = {shoot, count: 0, points: []};

  function shownOf(count) {
    const {series, lines, areas, others} = model.scene, newest = new Map(model.cells.slice(0, count).map(cell => [cell[0], cell]));
    const cells = [...newest.values()].sort((a, b) => a[1] - b[1]);
    const joined = series.flatMap(({colour, joins}, s) => {
      const at = cells.filter(cell => joins && cell[1] === s && !cell[8]).map(cell => [cell[2], cell[3]]).sort((a, b) => a[0] - b[0]);
      return at.length > 1 ? [{at, colour, dash: "1.5 3", width: 1}] : [];
    });
    const points = cells.map(([, s, x, y, low, high, fill, r, cross]) => ({at: [x, y], ends: [low, high], colour: series[s].colour, r, fill, cross}));
    return {lines: [...lines, ...joined], areas, points: [...others, ...points]};
  }

  function draw(width, height) {
    const shown = shownOf(hook.count);
    hook.points = shown.points;
    drawChart(picture, model.scene, shown, width, height, model.dark);
  }

  const show = () => { if (el.clientWidth) draw(el.clientWidth, Math.min(560, Math.max(380, 0.7 * el.clientWidth))); };

  // Films frames, with the legend below. make: `filmOf` or `picturesOf`.
  async function shoot(frames, size, make = filmOf) {
    const longer = Array.from({length: Math.max(frames.length, LONGEST)}, (_, k, all = Math.max(frames.length, LONGEST)) => frames[Math.round(k / (all - 1) * (frames.length - 1))]);
    const {fontFamily: family} = getComputedStyle(el), font = textOf(14, family), items = itemsOf(model.legend), [wide, tall] = [1000, 470];
    const style = `<style>text { font-family: ${family.replaceAll('"', "'")} } ${document.querySelector("style").textContent}</style>`;
    try {
      return await make(longer, ...size, async (count, ctx) => {
        hook.count = count;
        draw(wide, tall);
        picture.dataset.theme = model.dark ? "dark" : "light";
        picture.insertAdjacentHTML("afterbegin", style);
        const image = new Image();
        image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(picture))}`;
        await image.decode();
        const look = THEMES[picture.dataset.theme];
        ctx.font = font;
        const {places, height} = placedItems(ctx, items, wide - AROUND.left);
        paintWithin(ctx, size, look.paper, [wide, tall + height, ctx => {
          ctx.drawImage(image, 0, 0, wide, tall);
          ctx.font = font;
          drawItems(ctx, items, places, AROUND.left, tall, look.ink);
        }]);
      }, () => {});
    } finally {
      show();
    }
  }

  document.addEventListener("keydown", e => {
    const key = {" ": "space", ArrowRight: "right", ArrowLeft: "left", r: "r", R: "r"}[e.key];
    if (!key || e.ctrlKey || e.metaKey || e.altKey || e.target.closest?.("input, button")) return;
    e.preventDefault();
    model.send_msg({key});
  });
  new ResizeObserver(show).observe(el);
  model.on("msg:custom", count => { hook.count = count; show(); });
  model.on(["scene", "dark"], show);
}
