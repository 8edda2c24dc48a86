// What pages with a stage save of a run: a page that plays it, a film or its pictures; and the question before.
// seconds: of a film before its last picture, which stays for `last` seconds more.
const FILM = {rate: 30, seconds: 9.4, last: 0.5, bits: 2e6}, GIF = {rate: 15, seconds: 9};

function element(tag, className, parent, text = "") {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = text;
  parent.append(node);
  return node;
}

const joined = (Kind, lists) => {
  const all = new Kind(lists.reduce((sum, list) => sum + list.length, 0));
  lists.reduce((at, list) => (all.set(list, at), at + list.length), 0);
  return all;
};
const piped = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

// Bytes as text, and back.
async function packed(bytes) {
  let text = "";
  for (const byte of await piped(bytes, new CompressionStream("gzip"))) text += String.fromCharCode(byte);
  return btoa(text);
}
const unpacked = data => piped(Uint8Array.from(atob(data), c => c.charCodeAt(0)), new DecompressionStream("gzip"));

// page: the text of a page that plays what stands in the place of DATA.
function pageOf(page, kept) {
  const text = page.replace("/* DATA */ null", () => JSON.stringify(kept).replaceAll("</", "<\\/"));
  return new Blob([text], {type: "text/html"});
}

// A WebM file: Matroska's elements (RFC 9559), with the length of the film and the places at which a player may begin.
// pictures: {data: bytes, time: milliseconds, key: whether it stands alone}, the first of which does. lasts: milliseconds.
function webmOf(pictures, width, height, lasts) {
  const uint = (n, bytes = 4) => Array.from({length: bytes}, (_, k) => Math.floor(n / 256 ** (bytes - 1 - k)) % 256);
  const letters = words => [...new TextEncoder().encode(words)];
  const part = (id, ...contents) => {  // id: of the element, in hexadecimal digits
    const content = joined(Uint8Array, contents), bytes = id.match(/../g).map(two => parseInt(two, 16));
    return joined(Uint8Array, [bytes, [0x01, ...uint(content.length, 7)], content]);
  };
  const duration = new Uint8Array(8), by = letters("Steinlab");
  new DataView(duration.buffer).setFloat64(0, lasts);
  const header = part("1a45dfa3", part("4282", letters("webm")), part("4287", [4]), part("4285", [2]));
  const info = part("1549a966", part("2ad7b1", uint(1e6)), part("4489", duration), part("4d80", by), part("5741", by));
  const size = part("e0", part("b0", uint(width)), part("ba", uint(height)));
  const track = part("ae", part("d7", [1]), part("73c5", [1]), part("83", [1]), part("86", letters("V_VP8")), size);
  const tracks = part("1654ae6b", track);
  const groups = [], cues = [];
  for (const one of pictures) one.key ? groups.push([one]) : groups.at(-1).push(one);
  let at = info.length + tracks.length;
  const clusters = groups.map(group => {
    const start = group[0].time;
    const blocks = group.map(({data, time, key}) => part("a3", [0x81], uint(time - start, 2), [key ? 0x80 : 0], data));
    const cluster = part("1f43b675", part("e7", uint(start)), ...blocks);
    cues.push(part("bb", part("b3", uint(start)), part("b7", part("f7", [1]), part("f1", uint(at)))));
    at += cluster.length;
    return cluster;
  });
  return new Blob([header, part("18538067", info, tracks, ...clusters, part("1c53bb6b", ...cues))], {type: "video/webm"});
}

const sleep = milliseconds => new Promise(done => setTimeout(done, milliseconds));

// A film of at most ten seconds. paint(frame, ctx): paints one frame, at once or later. told(share): how much is done.
// Each frame has its time in the film, however long it takes. Browsers have the encoder for that at https and localhost.
async function filmOf(frames, width, height, paint, told) {
  const canvas = Object.assign(document.createElement("canvas"), {width, height}), ctx = canvas.getContext("2d");
  const every = Math.max(1, frames.length / (FILM.rate * FILM.seconds)), bitrate = FILM.bits * (height > 720 ? 1.2 : 1);
  const coded = {codec: "vp8", width, height, bitrate, framerate: FILM.rate};
  const shown = [];
  for (let k = 0; k < frames.length; k += every) shown.push(frames[Math.round(k)] ?? frames.at(-1));
  shown.push(frames.at(-1));
  const able = (await window.VideoEncoder?.isConfigSupported(coded))?.supported;
  if (!able) return filmedAsItPlays(canvas, shown, frame => paint(frame, ctx), bitrate, told);
  const pictures = [];
  let failed = null;
  const encoder = new VideoEncoder({
    output: chunk => {
      const data = new Uint8Array(chunk.byteLength);
      chunk.copyTo(data);
      pictures.push({data, time: Math.round(chunk.timestamp / 1000), key: chunk.type === "key"});
    },
    error: error => { failed = error; },
  });
  encoder.configure(coded);
  for (const [k, frame] of shown.entries()) {
    await paint(frame, ctx);
    const picture = new VideoFrame(canvas, {timestamp: 1e6 * k / FILM.rate});
    encoder.encode(picture, {keyFrame: k % (2 * FILM.rate) === 0});
    picture.close();
    told(k / shown.length);
    do await sleep(0); while (encoder.encodeQueueSize > 2 && !failed);  // the page goes on meanwhile
    if (failed) throw failed;
  }
  await encoder.flush();
  encoder.close();
  return webmOf(pictures, width, height, 1000 * (shown.length / FILM.rate + FILM.last));
}

// The same, while it plays: a machine that is too slow loses frames.
async function filmedAsItPlays(canvas, frames, paint, videoBitsPerSecond, told) {
  const stream = canvas.captureStream(FILM.rate), chunks = [];
  const recorder = new MediaRecorder(stream, {mimeType: "video/webm", videoBitsPerSecond});
  recorder.ondataavailable = e => chunks.push(e.data);
  const ended = new Promise(done => { recorder.onstop = done; });
  await paint(frames[0]);  // else the film begins with an empty picture
  recorder.start();
  for (const [k, frame] of frames.entries()) {
    await paint(frame);
    told(k / frames.length);
    await sleep(1000 / FILM.rate);
  }
  await sleep(1000 * FILM.last);
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
    await paint(frames[Math.round(k / Math.max(1, many - 1) * (frames.length - 1))], ctx);
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

// Offer a run of so many frames as a page ("html"), which replay() makes, or as a film, which shoot(size) does.
async function offerRun(kind, parent, count, replay, shoot) {
  const many = `${count} frame${count === 1 ? "" : "s"}`;
  if (kind === "html") {
    const made = await replay();
    return offer(parent, `A replay of ${many}: ${megabytes(made)}, one file.`, {Save: () => download(made, "steinlab.html")});
  }
  const film = size => () => shoot(size).then(made => offer(parent, `The film has ${megabytes(made)}.`, {Save: () => download(made, "steinlab.webm")}));
  offer(parent, `A film of ${many}. It plays ten seconds at most.`, {"720p": film([1280, 720]), "1080p": film([1920, 1080])});
}

// Paints a picture of w x h as large as a film's size allows. draw(ctx): paints it.
function paintWithin(ctx, [width, height], paper, [w, h, draw]) {
  const share = Math.min(width / w, height / h);
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.fillStyle = paper;
  ctx.fillRect(0, 0, width, height);
  ctx.translate((width - share * w) / 2, (height - share * h) / 2);
  ctx.scale(share, share);
  draw(ctx);
}
