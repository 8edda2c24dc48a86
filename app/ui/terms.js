// Cards of the terms that a reader may not know: the first time that one occurs in a text, it can be pointed at, or
// reached with Tab. TERMS, term -> sentence, comes from Python.
const NAMES = Object.keys(TERMS).sort((a, b) => b.length - a.length).map(name => name.replace(/[-]/g, "[-‑]"));
const TERM = new RegExp(`(?<![\\w-])(?:${NAMES.join("|")})(?![\\w-])`, "g");
const NO_TERM = "a, code, pre, h1, h2, h3, th, b, summary, .dial, .lights, .term, .inline, .display, svg, table.wide";

function markTerms(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), texts = [], seen = new Set();
  while (walker.nextNode()) if (!walker.currentNode.parentElement.closest(NO_TERM)) texts.push(walker.currentNode);
  for (const node of texts) {
    const parts = document.createDocumentFragment();
    let at = 0;
    for (const match of node.data.matchAll(TERM)) {
      const name = match[0].replace("‑", "-");
      if (seen.has(name)) continue;
      seen.add(name);
      const span = document.createElement("span");
      Object.assign(span, {className: "term", tabIndex: 0, textContent: match[0]});
      span.dataset.says = TERMS[name];
      span.setAttribute("aria-description", TERMS[name]);
      parts.append(node.data.slice(at, match.index), span);
      at = match.index + match[0].length;
    }
    if (!at) continue;
    parts.append(node.data.slice(at));
    node.replaceWith(parts);
  }
}
