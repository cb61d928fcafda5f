"use strict";
// Lists, filters and unfolds the rows. All content arrives as data and becomes text nodes; nothing is parsed as markup.
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const settings = read("settings");
  const { lines, filters } = read("lines");
  const tags = new Set(settings.tags), attributes = new Set(settings.attributes), drawn = new Set(settings.svg);
  const blocks = new Map();

  /** A part that several rows share, from the block it is kept in. */
  const shared = (number) => {
    const block = Math.floor(number / settings.block);
    if (!blocks.has(block)) blocks.set(block, read(`parts-${block}`));
    return blocks.get(block)[number % settings.block];
  };

  /** An element from `[tag, class, attributes, ...children]`, a text, or the number of a shared one. */
  const build = (node) => {
    if (typeof node === "string") return document.createTextNode(node);
    if (typeof node === "number") return build(shared(node));
    const [tag, name, given, ...children] = node;
    if (!tags.has(tag)) throw new Error(`no such element: ${tag}`);
    const made = drawn.has(tag)
      ? document.createElementNS("http://www.w3.org/2000/svg", tag)
      : document.createElement(tag);
    if (name) made.setAttribute("class", name);
    for (const [key, value] of Object.entries(given || {})) if (attributes.has(key)) made.setAttribute(key, value);
    made.append(...children.map(build));
    return made;
  };

  const wordsOf = (node) =>
    typeof node === "string" ? node : typeof node === "number" ? wordsOf(shared(node)) : node.slice(3).map(wordsOf).join(" ");

  const form = document.getElementById("filters");
  const body = document.querySelector("#list tbody");
  const status = document.getElementById("status");
  const [before, after] = document.querySelectorAll("#pager button");
  const haystacks = [];
  let matching = [];
  let first = 0;

  const haystack = (number) => (haystacks[number] ??= wordsOf(lines[number].n).toLowerCase());

  const matches = (number) => {
    const line = lines[number];
    for (const [place, name] of filters.entries()) {
      const wanted = form.elements[name].value;
      if (wanted !== "" && line.f[place] !== Number(wanted)) return false;
    }
    return haystack(number).includes(form.elements.text.value.trim().toLowerCase());
  };

  const unfold = (row, number, button) => {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    row.classList.toggle("open", !open);
    if (open) return row.nextElementSibling.remove();
    const cell = document.createElement("td");
    cell.colSpan = row.children.length;
    cell.append(build(document.getElementById(`row-${number}`) ? read(`row-${number}`) : settings.missing));
    const holder = document.createElement("tr");
    holder.className = "unfolded";
    holder.id = button.getAttribute("aria-controls");
    holder.append(cell);
    row.after(holder);
  };

  const show = () => {
    body.replaceChildren(...matching.slice(first, first + settings.page).map((number) => {
      const row = build(lines[number].n);
      const button = document.createElement("button");
      button.type = "button";
      button.className = "unfold";
      button.setAttribute("aria-expanded", "false");
      button.setAttribute("aria-controls", `unfolded-${number}`);
      button.append(...row.firstElementChild.childNodes);
      row.firstElementChild.append(button);
      row.addEventListener("click", (event) => {
        if (!getSelection().toString() || button.contains(event.target)) unfold(row, number, button);
      });
      return row;
    }));
    const last = Math.min(first + settings.page, matching.length);
    const total = lines.length === matching.length ? "" : ` (of ${lines.length.toLocaleString("en")})`;
    status.textContent = matching.length
      ? `${(first + 1).toLocaleString("en")}–${last.toLocaleString("en")} of ${matching.length.toLocaleString("en")}${total}`
      : "No row matches. Clear a filter to see more.";
    before.disabled = first === 0;
    after.disabled = last >= matching.length;
  };

  const filter = () => {
    matching = lines.map((_, number) => number).filter(matches);
    first = 0;
    show();
  };

  const turn = (by) => {
    first = Math.max(0, first + by * settings.page);
    show();
    document.getElementById("questions").scrollIntoView();
  };

  let waiting = 0;
  form.addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, event.target.name === "text" ? 150 : 0);
  });
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());
  before.addEventListener("click", () => turn(-1));
  after.addEventListener("click", () => turn(1));
  for (const hidden of document.querySelectorAll("[data-scripted]")) hidden.hidden = false;
  for (const plain of document.querySelectorAll("[data-unscripted]")) plain.remove();
  filter();
})();
