// What was shown of a run, to keep it: as one page that plays it again, or as a film. A frame is as `wire.pack` makes it.
const MANY = 600, HEAVY = 8e6, COLUMNS = 9, FINE = 32767, FILM = {rate: 30, seconds: 10, bits: 2e6}, GIF = {rate: 15, seconds: 9};

// Where each panel of a frame begins, where its rows do, and how many there are.
function partsOf(frame) {
  const parts = [];
  let at = 3;
  for (let p = 0; p < frame[1]; p++) {
    const m = frame[at], rows = at + 6 + frame[at + 4] + 2 * frame[at + 5];
    parts.push({at, rows, m, step: frame[at + 1]});
    at = rows + COLUMNS * m;
  }
  return parts;
}
const clockOf = frame => Math.max(...partsOf(frame).map(part => part.step));

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

const joined = (Kind, lists) => {
  const all = new Kind(lists.reduce((sum, list) => sum + list.length, 0));
  lists.reduce((at, list) => (all.set(list, at), at + list.length), 0);
  return all;
};
const piped = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

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
  let text = "";
  for (const byte of await piped(bytes, new CompressionStream("gzip"))) text += String.fromCharCode(byte);
  return {scales, count: frames.length, heads: head.length, data: btoa(text)};
}

async function decoded({scales, count, heads, data}) {
  const bytes = await piped(Uint8Array.from(atob(data), c => c.charCodeAt(0)), new DecompressionStream("gzip"));
  const head = new Float32Array(bytes.buffer, 0, heads), [low, high] = [0, 1].map(k => 4 * heads + k * (bytes.length - 4 * heads) / 2);
  const move = Int16Array.from({length: high - low}, (_, k) => bytes[low + k] | bytes[high + k] << 8), before = [], frames = [];
  let h = 0, at = 0;
  for (let k = 0; k < count; k++) {
    const lists = [head.subarray(h, h += 3)];
    for (let p = 0; p < lists[0][1]; p++) {
      const m = head[h], own = head.subarray(h, h += 6 + head[h + 4] + 2 * head[h + 5]);
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
  const kept = {...await encoded(frames), scene: {...scene, cards}, marks, show, dark};
  const text = page.replace("/* DATA */ null", () => JSON.stringify(kept).replaceAll("</", "<\\/"));
  return new Blob([text], {type: "text/html"});
}

// A film of at most ten seconds. paint(frame, ctx): paints one frame. told(share): how much is done.
async function filmOf(frames, width, height, paint, told) {
  const canvas = Object.assign(document.createElement("canvas"), {width, height}), ctx = canvas.getContext("2d");
  const stream = canvas.captureStream(FILM.rate), bits = FILM.bits * (height > 720 ? 1.2 : 1), chunks = [];
  const recorder = new MediaRecorder(stream, {mimeType: "video/webm", videoBitsPerSecond: bits});
  recorder.ondataavailable = e => chunks.push(e.data);
  const ended = new Promise(done => { recorder.onstop = done; });
  const every = Math.max(1, frames.length / (FILM.rate * FILM.seconds));
  paint(frames[0], ctx);
  recorder.start();
  for (let k = 0; k < frames.length; k += every) {
    paint(frames[Math.round(k)] ?? frames.at(-1), ctx);
    told(k / frames.length);
    await new Promise(done => setTimeout(done, 1000 / FILM.rate));
  }
  paint(frames.at(-1), ctx);
  await new Promise(done => setTimeout(done, 500));  // the last picture stays
  recorder.stop();
  await ended;
  stream.getTracks().forEach(track => track.stop());
  return new Blob(chunks, {type: "video/webm"});
}

// The pictures of a GIF as data URLs, as fast as the film. No browser encodes a GIF; its last picture stays a second.
async function picturesOf(frames, width, height, paint) {
  const ctx = Object.assign(document.createElement("canvas"), {width, height}).getContext("2d"), pictures = [];
  const many = Math.ceil(GIF.rate * Math.min(GIF.seconds, frames.length / FILM.rate));
  for (let k = 0; k < many; k++) {
    paint(frames[Math.round(k / Math.max(1, many - 1) * (frames.length - 1))], ctx);
    pictures.push(ctx.canvas.toDataURL());
  }
  return pictures;
}

// Ask whether to save something, with its size. choices: {label: call}.
function offer(parent, text, choices) {
  const box = element("dialog", "offer", parent);
  element("p", "", box, text);
  const row = element("div", "", box);
  for (const [label, call] of Object.entries({...choices, Cancel: () => {}})) {
    const button = element("button", "", row, label);
    button.type = "button";
    button.onclick = () => { box.close(); call(); };
  }
  box.onclose = () => box.remove();
  box.showModal();
}
const megabytes = blob => `${(blob.size / 1e6).toFixed(2)} MB`;
