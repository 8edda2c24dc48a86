// What was shown of a training, to keep it as a page. A frame is as `joined` of `parts.py` makes it: its second number is
// the row of the page, its third the step.
const MOST = 300, BOUND = 2 ** 22;  // frames of a row; of a number in its unit: three bytes hold each change
const clockOf = frame => frame[2];
const momentOf = frame => `step ${clockOf(frame)}`;

class Recorder {
  rows = [];
  count = 0;
  get frames() { return this.rows.flat().sort((a, b) => a.at - b.at).map(({frame}) => frame); }
  // A frame of an earlier step takes the place of what came after it.
  take(frame) {
    const list = this.rows[frame[1]] ??= [];
    while (list.length && clockOf(list.at(-1).frame) >= clockOf(frame)) list.pop();
    list.push({at: this.count++, frame: frame.slice()});
    if (list.length > MOST) this.rows[frame[1]] = list.filter((_, k) => (list.length - k) % 2);
  }
  clear() { this.rows = []; }
}

// What is on screen at a moment: the newest frame of each row.
function shownAt(frames, k) {
  const newest = new Map();
  for (const frame of frames.slice(0, k + 1)) newest.set(frame[1], frame);
  return [...newest.values()];
}

const keptOf = ([n, every]) => Math.ceil(n / every);
const unitsOf = (v, unit) => Math.max(-BOUND, Math.min(BOUND, Math.floor(v / unit + 0.5) || 0));

// Frames as text: whole numbers of units, as changes from frame to frame. runsOf(frame): [numbers, every, unit] of its parts.
async function encoded(frames, runsOf) {
  const names = [], layouts = [], order = [], before = [], moves = [];
  for (const frame of frames) {
    const layout = [frame[1], runsOf(frame)], name = JSON.stringify(layout), now = [];
    if (!names.includes(name)) layouts[names.push(name) - 1] = layout;
    const at = names.indexOf(name), old = before[at];
    let o = 0;
    for (const [n, every, unit] of layout[1]) {
      for (let i = 0; i < n; i += every) now.push(unitsOf(frame[o + i], unit));
      o += n;
    }
    order.push(at);
    moves.push(now.map((v, i) => v - (old?.[i] ?? 0)).map(v => v < 0 ? -2 * v - 1 : 2 * v));
    before[at] = now;
  }
  const all = joined(Int32Array, moves), planes = [0, 8, 16].map(shift => Uint8Array.from(all, v => v >> shift));
  return {layouts, order, data: await packed(joined(Uint8Array, planes))};
}

async function decoded({layouts, order, data}) {
  const bytes = await unpacked(data), many = bytes.length / 3, before = [], frames = [];
  let k = 0;
  for (const at of order) {
    const runs = layouts[at][1], old = before[at], now = [];
    for (const end = k + runs.reduce((sum, run) => sum + keptOf(run), 0); k < end; k++) {
      const v = bytes[k] | bytes[k + many] << 8 | bytes[k + 2 * many] << 16;
      now.push((v & 1 ? -(v + 1) / 2 : v / 2) + (old?.[now.length] ?? 0));
    }
    before[at] = now;
    frames.push(widened(now, runs));
  }
  return frames;
}

// The numbers of a frame, with a smooth curve (Catmull-Rom) through those that were kept.
function widened(now, runs) {
  const frame = [];
  let o = 0;
  for (const [n, every, unit] of runs) {
    const last = keptOf([n, every]) - 1, at = j => now[o + Math.max(0, Math.min(j, last))];
    for (let i = 0; i < n; i++) {
      const j = Math.floor(i / every), t = i / every - j, [a, b, c, d] = [at(j - 1), at(j), at(j + 1), at(j + 2)];
      frame.push(unit * (b + t / 2 * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))));
    }
    o += last + 1;
  }
  return Float32Array.from(frame);
}

// page: the text of a page that plays what stands in the place of DATA.
async function replayOf(page, {scene, points, nuts, dark}, legend, frames, runsOf) {
  return pageOf(page, {...await encoded(frames, runsOf), scene, points, nuts, dark, legend});
}
