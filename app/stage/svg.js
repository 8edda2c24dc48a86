// Export of the stage. SvgContext has just the CanvasRenderingContext2D calls which the drawing
// code uses and records them as SVG, so screen, PNG and SVG come from the same functions.
const SVG_STATE = ["fillStyle", "strokeStyle", "lineWidth", "globalAlpha", "font", "textAlign", "matrix", "clipId"];

class SvgContext {
  constructor(width, height) {
    Object.assign(this, {width, height, fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1,
      font: "10px sans-serif", textAlign: "left", matrix: "", clipId: 0});
    this.elements = [];
    this.stack = [];
    this.clips = 0;
    this.path = "";
    this.ruler = document.createElement("canvas").getContext("2d");
  }
  save() { this.stack.push(SVG_STATE.map(key => this[key])); }
  restore() { this.stack.pop().forEach((value, i) => { this[SVG_STATE[i]] = value; }); }
  translate(x, y) { this.matrix += `translate(${x} ${y})`; }
  rotate(angle) { this.matrix += `rotate(${angle * 180 / Math.PI})`; }
  beginPath() { this.path = ""; }
  moveTo(x, y) { this.path += `M${x.toFixed(2)} ${y.toFixed(2)}`; }
  lineTo(x, y) { this.path += `L${x.toFixed(2)} ${y.toFixed(2)}`; }
  closePath() { this.path += "Z"; }
  rect(x, y, w, h) { this.path += `M${x} ${y}h${w}v${h}h${-w}Z`; }
  ellipse(x, y, rx, ry, turn) {  // whole ones only
    const r = `${rx.toFixed(2)} ${ry.toFixed(2)} ${(turn * 180 / Math.PI).toFixed(1)} 1 0`;
    const [dx, dy] = [rx * Math.cos(turn), rx * Math.sin(turn)];
    this.moveTo(x - dx, y - dy);
    this.path += `a${r} ${(2 * dx).toFixed(2)} ${(2 * dy).toFixed(2)}a${r} ${(-2 * dx).toFixed(2)} ${(-2 * dy).toFixed(2)}`;
  }
  clip() {
    this.clipId = ++this.clips;
    this.elements.push(`<clipPath id="clip${this.clipId}"><path d="${this.path}"/></clipPath>`);
  }
  stroke() {
    if (this.path) this.add(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"`);
  }
  fill() { if (this.path) this.add(`<path d="${this.path}" fill="${this.fillStyle}"`); }
  fillRect(x, y, w, h) {
    this.add(`<rect x="${x}" y="${y}" width="${w}" height="${h}" fill="${this.fillStyle}"`);
  }
  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }
  fillText(text, x, y) {
    const anchor = {left: "start", center: "middle", right: "end"}[this.textAlign];
    this.add(`<text x="${x}" y="${y}" text-anchor="${anchor}" fill="${this.fillStyle}" ` +
      `style="font:${escapeXml(this.font)}"`, `${escapeXml(text)}</text>`);
  }
  drawImage(canvas, x, y, w, h) {
    this.add(`<image x="${x}" y="${y}" width="${w}" height="${h}" preserveAspectRatio="none" ` +
      `href="${canvas.toDataURL()}"`);
  }
  add(tag, body) {
    const clip = this.clipId ? ` clip-path="url(#clip${this.clipId})"` : "";
    const matrix = this.matrix ? ` transform="${this.matrix}"` : "";
    const alpha = this.globalAlpha < 1 ? ` opacity="${this.globalAlpha.toFixed(3)}"` : "";
    this.elements.push(tag + alpha + matrix + clip + (body ? ">" + body : "/>"));
  }
  toString() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" ` +
      `viewBox="0 0 ${this.width} ${this.height}">\n${this.elements.join("\n")}\n</svg>\n`;
  }
}

function escapeXml(text) {
  return String(text).replace(/[&<>"]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})[c]);
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// draw(ctx) paints a picture of width x height CSS pixels.
function exportPicture(kind, width, height, draw) {
  if (kind === "svg") {
    const ctx = new SvgContext(width, height);
    draw(ctx);
    download(new Blob([ctx.toString()], {type: "image/svg+xml"}), "steinlab.svg");
  } else {
    const ctx = sizedCanvas(document.createElement("canvas"), width, height, 2);
    draw(ctx);
    ctx.canvas.toBlob(blob => download(blob, "steinlab.png"));
  }
}

function sizedCanvas(canvas, width, height, ratio) {
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  return ctx;
}
