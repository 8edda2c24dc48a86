// What was shown of a run, to keep it: as one page that plays it again. A frame is as `wire.pack` makes it.
const MANY = 600, HEAVY = 8e6, COLUMNS = 9, FINE = 32767;

// How many numbers stand before the rows of the panel that begins at `at`: a density may be the last of them.
function headOf(frame, at) {
  const length = 6 + frame[at + 4] + 2 * frame[at + 5];
  return length + (frame[at + 2] & 4 ? frame[at + length] : 0);
}

// Where each panel of a frame begins, where its rows do, and how many there are.
function partsOf(frame) {
  const parts = [];
  let at = 3;
  for (let p = 0; p < frame[1]; p++) {
    const m = frame[at], rows = at + headOf(frame, at);
    parts.push({at, rows, m, step: frame[at + 1]});
    at = rows + COLUMNS * m;
  }
  return parts;
}
const clockOf = frame => Math.max(...partsOf(frame).map(part => part.step));
const shownAt = (frames, k) => [frames[k]];  // what is on screen at a moment
const momentOf = frame => `step ${clockOf(frame)}`;

class Recorder {
  frames = [];
  // A frame of another run, or of an earlier step, takes the place of what came after it.
  take(frame) {
    if (this.frames.length && this.frames[0][2] !== frame[2]) this.frames = [];
    const clock = clockOf(frame);
    while (this.frames.length && clockOf(this.frames.at(-1)) >= clock) this.frames.pop();
    this.frames.push(frame.slice());
    if (this.frames.length > MANY || this.frames.length * frame.byteLength > HEAVY) this.frames = this.frames.filter((_, k) => k % 2 === 0);
  }
}

// Frames as text. Positions and forces have 16 bits of the largest value in their column, as changes from frame to frame.
async function encoded(frames) {
  const scales = [], heads = [], moves = [], before = [];
  for (const frame of frames) partsOf(frame).forEach(({rows, m}, p) => {
    const own = scales[p] ??= new Array(COLUMNS).fill(0);
    for (let i = 0; i < COLUMNS * m; i++) own[i % COLUMNS] = Math.max(own[i % COLUMNS], Math.abs(frame[rows + i]) || 0);
  });
  for (const frame of frames) {
    heads.push(frame.subarray(0, 3));
    partsOf(frame).forEach(({at, rows, m}, p) => {
      const now = new Int16Array(COLUMNS * m);
      for (let c = 0; c < COLUMNS; c++)
        for (let i = 0; i < m; i++) now[c * m + i] = Math.round(frame[rows + COLUMNS * i + c] / (scales[p][c] || 1) * FINE);
      heads.push(frame.subarray(at, rows));
      moves.push(before[p]?.length === now.length ? now.map((v, i) => v - before[p][i]) : now);
      before[p] = now;
    });
  }
  const head = joined(Float32Array, heads), move = joined(Int16Array, moves);
  const bytes = joined(Uint8Array, [new Uint8Array(head.buffer), Uint8Array.from(move), Uint8Array.from(move, v => v >> 8)]);
  return {scales, count: frames.length, heads: head.length, data: await packed(bytes)};
}

async function decoded({scales, count, heads, data}) {
  const bytes = await unpacked(data);
  const head = new Float32Array(bytes.buffer, 0, heads), [low, high] = [0, 1].map(k => 4 * heads + k * (bytes.length - 4 * heads) / 2);
  const move = Int16Array.from({length: high - low}, (_, k) => bytes[low + k] | bytes[high + k] << 8), before = [], frames = [];
  let h = 0, at = 0;
  for (let k = 0; k < count; k++) {
    const lists = [head.subarray(h, h += 3)];
    for (let p = 0; p < lists[0][1]; p++) {
      const m = head[h], own = head.subarray(h, h += headOf(head, h));
      const change = move.subarray(at, at += COLUMNS * m), old = before[p]?.length === change.length ? before[p] : null;
      const now = before[p] = old ? change.map((v, i) => v + old[i]) : change, rows = new Float32Array(COLUMNS * m);
      for (let c = 0; c < COLUMNS; c++)
        for (let i = 0; i < m; i++) rows[COLUMNS * i + c] = now[c * m + i] / FINE * scales[p][c];
      lists.push(own, rows);
    }
    frames.push(joined(Float32Array, lists));
  }
  return frames;
}

// page: the text of a page that plays what stands in the place of DATA.
async function replayOf(page, {scene, marks, show, dark}, frames) {
  const cards = scene.cards.map(card => ({...card, edit: false}));
  return pageOf(page, {...await encoded(frames), scene: {...scene, cards}, marks, show, dark});
}
