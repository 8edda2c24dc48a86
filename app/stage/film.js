// What pages with a stage save of a run: a page that plays it, a film or its pictures; and the question before.
const FILM = {rate: 30, seconds: 10, bits: 2e6}, GIF = {rate: 15, seconds: 9};

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

// A film of at most ten seconds. paint(frame, ctx): paints one frame, at once or later. told(share): how much is done.
async function filmOf(frames, width, height, paint, told) {
  const canvas = Object.assign(document.createElement("canvas"), {width, height}), ctx = canvas.getContext("2d");
  const stream = canvas.captureStream(FILM.rate), bits = FILM.bits * (height > 720 ? 1.2 : 1), chunks = [];
  const recorder = new MediaRecorder(stream, {mimeType: "video/webm", videoBitsPerSecond: bits});
  recorder.ondataavailable = e => chunks.push(e.data);
  const ended = new Promise(done => { recorder.onstop = done; });
  const every = Math.max(1, frames.length / (FILM.rate * FILM.seconds));
  await paint(frames[0], ctx);
  recorder.start();
  for (let k = 0; k < frames.length; k += every) {
    await paint(frames[Math.round(k)] ?? frames.at(-1), ctx);
    told(k / frames.length);
    await new Promise(done => setTimeout(done, 1000 / FILM.rate));
  }
  await paint(frames.at(-1), ctx);
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
  offer(parent, `A film of ${many}. It takes as long as it plays, ten seconds at most.`, {"720p": film([1280, 720]), "1080p": film([1920, 1080])});
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
