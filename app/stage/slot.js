// A place elsewhere on the page for what a stage would show below itself: it finds the place by its key.
export function render({model, el}) {
  const root = document.createElement("div");
  root.className = "stage slot";
  el.append(root);
  (globalThis.steinlabSlots ??= {})[model.key] = root;
  const darken = () => root.classList.toggle("dark", model.dark);
  model.on("dark", darken);
  model.on("remove", () => { delete globalThis.steinlabSlots[model.key]; });
  darken();
  dispatchEvent(new Event("steinlab-slot"));
}
