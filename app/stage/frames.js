// What comes with a frame: the inverse of `wire.pack`, and what a card makes of it.

// A trail shows the whole path of a few particles, and the last steps of many.
const PATHS = 4;  // particles
const trailOf = count => Math.max(12, Math.min(400, Math.floor(2400 / count)));

// Whether a few particles stand where they stood at the frame before the last: such a frame adds nothing to a path.
const rests = (map, trail, here) => here.length <= 2 * PATHS && trail.length > 1 &&
  here.every((v, i) => Math.abs(v - trail.at(-2)[i]) * (i % 2 ? map.ky : map.kx) < 0.5);

// Whether any particle has gone further than a few pixels between two sets of positions.
function moves(map, before, here) {
  return !before || before.length !== here.length ||
    here.some((v, i) => Math.abs(v - before[i]) * (i % 2 ? map.ky : map.kx) > 6);
}

// Inverse of pack() in wire.py.
function unpack(frame) {
  const panels = [];
  for (let p = 0, o = 3; p < frame[1]; p++) {
    const [drawn, step, flags, background, k, points] = frame.subarray(o, o + 6), hasScale = flags % 2, noisy = (flags & 2) > 0;
    const take = length => frame.subarray(o, o += length);
    o += 6;
    const panel = {count: drawn, drawn, step, hasScale, noisy, background, metrics: take(k), fixed: take(2 * points)};
    if (flags & 4) panel.count = (panel.crowd = unpackCrowd(take(frame[o]))).total;
    panels.push({...panel, rows: take(ROW * drawn)});
  }
  return panels;
}

// What a card draws as arrows: the rows of a panel, whose forces are a mean over recent frames when they are noisy: over 20
// while particles move, over 300 at rest. A knob that was turned at rest shows at once: its difference has no noise.
function averaged(card, {noisy, rows, step}, moving) {
  const {raw, arrows, step: before} = card;
  card.raw = rows;
  if (!noisy) return rows;
  if (!raw || raw === arrows || arrows.length !== rows.length || card.restarted || !card.trail.length) {
    card.averaged = 1;
    return rows.slice();
  }
  if (step !== before) card.averaged = Math.min(card.averaged + 1, moving ? 20 : 300);
  for (let i = 0; i < rows.length; i++) {
    if (i % ROW < 4) arrows[i] = rows[i];
    else arrows[i] += step === before ? rows[i] - raw[i] : (rows[i] - arrows[i]) / card.averaged;
  }
  return arrows;
}

// Gives a card its new panel: background, trail, arrows and step. Returns whether another run, or fewer particles, have come.
function takePanel(card, panel, background, fresh) {
  if (background !== card.background) card.trail = card.recent = [];  // another space
  card.background = background;
  card.restarted = fresh || panel.step < card.step;
  card.moved = panel.step !== card.step;
  const here = new Float32Array(panel.drawn * 2).map((_, i) => panel.rows[(i >> 1) * ROW + i % 2]);
  const before = card.trail.at(-1), begin = card.restarted || before && here.length < before.length;
  if (card.restarted) {  // what came later than this step never happened, or will be drawn again
    card.readouts.forEach(readout => { readout.history = readout.history.filter(past => past.step < panel.step); });
  }
  if (begin) card.trail = card.recent = [];
  else if (!card.moved || rests(background.map, card.trail, here)) card.trail.pop();
  card.arrows = averaged(card, panel, moves(background.map, card.recent.at(-20), here));
  card.recent = [...card.recent, here].slice(-20);
  card.trail = [...card.trail, here].slice(-trailOf(panel.drawn));
  card.fresh = true;
  card.step = panel.step;
  return begin;
}

// The rows of a table between two frames: positions and sizes move, forces are those of the newer one.
function between(before, rows, share) {
  if (!before || share >= 1 || before.length !== rows.length) return rows;
  return rows.map((v, i) => i % ROW < 4 ? before[i] + share * (v - before[i]) : v);
}

const table = rows => Array.from({length: rows.length / ROW}, (_, i) => [...rows.subarray(i * ROW, (i + 1) * ROW)]);
