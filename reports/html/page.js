"use strict";
// What a letter of a column means; a capital letter is red.
const OUTCOMES = {
  p: "pass", m: "mismatch", e: "error", c: "crash", t: "timeout", i: "JAX itself has not",
};
const CHOICES = ["", "not a pass", "red", "declared", "changed", "mismatch", "error", "crash", "timeout"];
const ROW = parseFloat(getComputedStyle(document.documentElement).fontSize) * 1.75;

const $ = (id) => document.getElementById(id);
const filters = $("filters").elements;
let data;
let view; // what the filters leave: the columns, and the lines of the grid
const opened = new Set(); // families and primitives whose rows are shown
let focus = { line: 0, column: -1 };
let selected = null; // the cell that is open: [harness, column's title]

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// The filters, and the address that holds them.

function options(name, texts, label = (text) => text || "all") {
  const before = filters[name].value;
  filters[name].replaceChildren(
    ...texts.map((text) => element("option", { value: text }, label(text))),
  );
  filters[name].value = texts.includes(before) ? before : texts[0];
}

function fillFilters() {
  options("family", ["", ...data.words.family]);
  options("dtype", ["", ...[...data.words.dtype].sort()]);
  options("outcome", CHOICES);
  const numbers = data.runs.map((_, number) => String(number));
  options("run", [...numbers].reverse(), (number) => data.runs[number].title);
  options("beside", ["", ...numbers], (n) => (n === "" ? "no other run" : data.runs[n].title));
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const field of $("filters").querySelectorAll("input, select")) {
    if (given.has(field.name)) field.value = given.get(field.name);
    if (field.selectedIndex === -1) field.selectedIndex = 0;
  }
  opened.clear();
  (given.get("open") || "").split(",").filter(Boolean).forEach((key) => opened.add(key));
  selected = given.has("cell") ? given.get("cell").split("|") : null;
}

function writeAddress() {
  const given = new URLSearchParams();
  for (const field of $("filters").querySelectorAll("input, select")) {
    const plain = field.name === "run" ? String(data.runs.length - 1) : "";
    if (field.value !== plain) given.set(field.name, field.value);
  }
  if (opened.size) given.set("open", [...opened].join(","));
  if (selected) given.set("cell", selected.join("|"));
  history.replaceState(null, "", `#${given}`);
}

// What the filters leave.

function run() { return data.runs[filters.run.value]; }

function columnBeside(column) {
  if (filters.beside.value === "") return null;
  return data.runs[filters.beside.value].columns.find((c) => c.title === column.title) || null;
}

function isChanged(column, beside, harness) {
  if (!beside) return false;
  return column.outcomes[harness].toLowerCase() !== beside.outcomes[harness].toLowerCase();
}

const TESTS = {
  "not a pass": (letter) => !"p i".includes(letter.toLowerCase()),
  red: (letter) => letter !== letter.toLowerCase(),
  declared: (letter) => letter === letter.toLowerCase() && !"p i".includes(letter),
  mismatch: (letter) => letter.toLowerCase() === "m",
  error: (letter) => letter.toLowerCase() === "e",
  crash: (letter) => letter.toLowerCase() === "c",
  timeout: (letter) => letter.toLowerCase() === "t",
};

function chosenHarnesses(columns) {
  const { name, family, primitive, dtype } = data.harnesses;
  const search = filters.search.value.trim().toLowerCase();
  const test = TESTS[filters.outcome.value];
  const chosen = [];
  for (let h = 0; h < name.length; h++) {
    if (filters.family.value && data.words.family[family[h]] !== filters.family.value) continue;
    if (filters.dtype.value && data.words.dtype[dtype[h]] !== filters.dtype.value) continue;
    if (search && !name[h].toLowerCase().includes(search)
      && !data.words.primitive[primitive[h]].toLowerCase().includes(search)) continue;
    if (test && !columns.some(({ column }) => test(column.outcomes[h]))) continue;
    if (filters.outcome.value === "changed"
      && !columns.some(({ column, beside }) => isChanged(column, beside, h))) continue;
    if (columns.every(({ column }) => column.outcomes[h] === " ")) continue;
    chosen.push(h);
  }
  return chosen;
}

function chosenColumns() {
  const words = filters.columns.value.toLowerCase().split(/\s+/).filter(Boolean);
  return run().columns
    .filter((column) => words.every((word) => column.title.toLowerCase().split(" ").includes(word)
      || column.title.toLowerCase().includes(word)))
    .map((column) => ({ column, beside: columnBeside(column) }));
}

function group(harnesses, key) {
  const groups = new Map();
  for (const h of harnesses) {
    const of = key(h);
    if (!groups.has(of)) groups.set(of, []);
    groups.get(of).push(h);
  }
  return groups;
}

function chooseView() {
  const columns = chosenColumns();
  const harnesses = chosenHarnesses(columns);
  const { name, family, primitive } = data.harnesses;
  const lines = [];
  for (const [f, ofFamily] of group(harnesses, (h) => data.words.family[family[h]])) {
    lines.push({ level: 0, key: f, label: f, harnesses: ofFamily });
    if (!opened.has(f)) continue;
    for (const [p, members] of group(ofFamily, (h) => data.words.primitive[primitive[h]])) {
      const key = `${f}/${p}`;
      lines.push({ level: 1, key, label: p, harnesses: members });
      if (!opened.has(key)) continue;
      for (const h of members) lines.push({ level: 2, key: name[h], label: name[h], harnesses: [h] });
    }
  }
  view = { columns, harnesses, lines };
  focus.line = Math.min(focus.line, Math.max(lines.length - 1, 0));
}

function counted(harnesses, column, beside) {
  const counts = { cells: 0, red: 0, changed: 0 };
  for (const h of harnesses) {
    const letter = column.outcomes[h];
    if (beside && isChanged(column, beside, h)) counts.changed++;
    if (letter === " ") continue;
    const small = letter.toLowerCase();
    counts.cells++;
    counts[small] = (counts[small] || 0) + 1;
    if (letter !== small) counts.red++;
  }
  return counts;
}

// The picture. Only the lines in sight are elements.

// The colours of a cell: one for each dtype of a primitive, in shares of what came of a family.

const WORST = "ctemip"; // what is shown of several outcomes, the first of these

function stripes(parts) {
  let before = 0;
  const total = parts.reduce((sum, { size }) => sum + size, 0);
  const stops = parts.map(({ letter, size }) => {
    const after = before + (100 * size) / total;
    const stop = `var(--${letter}) ${before.toFixed(2)}% ${after.toFixed(2)}%`;
    before = after;
    return stop;
  });
  return stops.length === 1 ? `var(--${parts[0].letter})` : `linear-gradient(to right, ${stops.join(", ")})`;
}

function shares(counts) {
  // A failure is seen however few there are.
  const least = 0.08 * counts.cells;
  return stripes([..."pimetc"].filter((letter) => counts[letter])
    .map((letter) => ({ letter, size: letter === "p" ? counts.p : Math.max(counts[letter], least) })));
}

function byDtype(harnesses, column) {
  const dtypes = group(harnesses.filter((h) => column.outcomes[h] !== " "), (h) => data.harnesses.dtype[h]);
  return [...dtypes].map(([dtype, members]) => {
    const letters = members.map((h) => column.outcomes[h].toLowerCase());
    return { dtype: data.words.dtype[dtype], letter: [...WORST].find((l) => letters.includes(l)), size: 1 };
  });
}

function spoken(counts) {
  const parts = Object.entries(OUTCOMES).filter(([l]) => counts[l]).map(([l, w]) => `${counts[l]} ${w}`);
  if (counts.red) parts.push(`${counts.red} red`);
  if (counts.changed) parts.push(`${counts.changed} changed`);
  return parts.join(", ") || "no cell";
}

function figure(counts, level) {
  if (!counts.cells) return "";
  if (level === 2) return { p: "✓", i: "–" }[Object.keys(OUTCOMES).find((l) => counts[l])]
    || OUTCOMES[Object.keys(OUTCOMES).find((l) => counts[l])];
  const asked = counts.cells - (counts.i || 0);
  const passed = counts.p || 0;
  return passed === asked ? `✓ ${asked}` : `${passed} of ${asked}`;
}

function cellOf(line, index, lineNumber) {
  const { column, beside } = view.columns[index];
  const counts = counted(line.harnesses, column, beside);
  const dtypes = line.level === 1 ? byDtype(line.harnesses, column) : [];
  const failing = dtypes.filter(({ letter }) => !"pi".includes(letter)).map(({ dtype }) => dtype);
  const told = spoken(counts) + (failing.length ? ` (${failing.join(", ")})` : "");
  const cell = element("div", {
    class: "cell", role: "gridcell", id: `cell-${lineNumber}-${index}`,
    "aria-label": `${line.label}, ${column.title}: ${told}`, title: told,
  });
  if (counts.cells) {
    const classes = ["fill"];
    if (counts.red) classes.push("red");
    if (counts.changed) classes.push("changed");
    if (focus.line === lineNumber && focus.column === index) classes.push("focused");
    cell.append(element("div", {
      class: classes.join(" "), style: `background: ${dtypes.length ? stripes(dtypes) : shares(counts)}`,
      onclick: () => { focus = { line: lineNumber, column: index }; open(); },
    }, figure(counts, line.level)));
  }
  return cell;
}

function lineOf(line, number) {
  const sign = line.level === 2 ? "" : opened.has(line.key) ? "▾ " : "▸ ";
  const classes = `name level${line.level}`
    + (focus.line === number && focus.column === -1 ? " focused" : "");
  const button = element("button", {
    tabindex: -1, title: line.label,
    onclick: () => { focus = { line: number, column: -1 }; open(); },
  }, sign + line.label);
  const attributes = { class: classes, role: "rowheader", id: `cell-${number}--1` };
  if (line.level < 2) attributes["aria-expanded"] = opened.has(line.key);
  return element(
    "div",
    { class: "row", role: "row", style: `top: ${number * ROW}px`, "aria-rowindex": number + 2 },
    element("div", attributes, button),
    ...view.columns.map((_, index) => cellOf(line, index, number)),
  );
}

function draw() {
  const grid = $("grid");
  const room = (grid.clientWidth - $("head").firstChild.offsetWidth) / (view.columns.length || 1);
  const least = parseFloat(getComputedStyle($("head")).fontSize) * 4.2;
  grid.style.setProperty("--column", `${Math.min(Math.max(room, least), 3 * least)}px`);
  const first = Math.max(Math.floor(grid.scrollTop / ROW) - 4, 0);
  const last = Math.min(first + Math.ceil(grid.clientHeight / ROW) + 8, view.lines.length);
  $("rows").style.height = `${view.lines.length * ROW}px`;
  $("rows").replaceChildren(
    ...view.lines.slice(first, last).map((line, offset) => lineOf(line, first + offset)),
  );
  grid.setAttribute("aria-rowcount", view.lines.length + 1);
  grid.setAttribute("aria-activedescendant", `cell-${focus.line}-${focus.column}`);
}

function drawHead() {
  const titles = view.columns.map(({ column }) =>
    element("div", { class: "cell", role: "columnheader" }, column.title));
  $("head").replaceChildren(element("div", { class: "name", role: "columnheader" }, ""), ...titles);
  const total = view.columns.map(({ column, beside }) => counted(view.harnesses, column, beside));
  const sum = (field) => total.reduce((before, counts) => before + (counts[field] || 0), 0);
  const cells = sum("cells");
  $("summary").textContent = `${view.harnesses.length} harnesses, ${cells} of ${run().asked} cells: `
    + `${sum("p")} pass, ${cells - sum("p") - sum("i")} do not, ${sum("red")} red`
    + (filters.beside.value === "" ? "" : `, ${sum("changed")} changed`);
  $("legend").replaceChildren(
    ...Object.entries(OUTCOMES).map(([letter, word]) => element("span", {},
      element("i", { class: "swatch", style: `background: var(--${letter})` }), word)),
    element("span", {}, element("i", { class: "swatch red" }), "red: the ledger says otherwise"),
  );
}

function redraw() {
  chooseView();
  drawHead();
  draw();
  drawDetails();
  writeAddress();
}

// What a cell opens to.

function open() {
  const line = view.lines[focus.line];
  if (!line) return;
  if (focus.column === -1 && line.level < 2) {
    if (!opened.delete(line.key)) opened.add(line.key);
  } else if (focus.column !== -1) {
    const { column } = view.columns[focus.column];
    if (line.level === 2) selected = [line.key, column.title];
    else selected = [line.key, column.title, "group"];
  }
  redraw();
}

function close() {
  selected = null;
  redraw();
}

function term(title, ...values) {
  return [element("dt", {}, title), ...values.map((value) => element("dd", {}, value))];
}

function drawDetails() {
  const aside = $("details");
  // What has the keyboard is replaced: it goes to what is there in its place.
  const inside = aside.contains(document.activeElement);
  aside.hidden = !selected;
  aside.replaceChildren(...(selected ? details() : []));
  if (inside) (aside.querySelector("button") || $("grid")).focus();
}

function details() {
  const [key, title, kind] = selected;
  const column = run().columns.find((c) => c.title === title);
  const shut = element("p", {}, element("button", { onclick: close }, "Close (Escape)"));
  const head = [shut, element("h2", {}, key), element("p", {}, title)];
  if (!column) return [...head, "This run has no such cell."];
  return [...head, ...(kind ? groupDetails(key, column) : cellDetails(key, column))];
}

function groupDetails(key, column) {
  const line = view.lines.find((l) => l.key === key);
  if (!line) return ["The filters leave nothing of it."];
  const failing = line.harnesses.filter((h) => !"p i".includes(column.outcomes[h].toLowerCase()));
  const shown = failing.slice(0, 200).map((h) => element("li", {},
    element("button", {
      onclick: () => { selected = [data.harnesses.name[h], column.title]; redraw(); },
    }, data.harnesses.name[h]),
    ` ${OUTCOMES[column.outcomes[h].toLowerCase()]}`));
  const more = failing.length > shown.length ? `and ${failing.length - shown.length} more` : "";
  return [
    element("p", {}, spoken(counted(line.harnesses, column, columnBeside(column)))),
    element("ul", {}, ...shown), more,
  ];
}

function cellDetails(name, column) {
  const h = data.harnesses.name.indexOf(name);
  const letter = column.outcomes[h];
  if (h === -1 || letter === " ") return ["This run has no such cell."];
  const [ulps, tolerance, nodes, seconds] = column.sizes[h];
  const [message, limitation] = column.notes[h] || [null, null];
  const red = letter !== letter.toLowerCase();
  const parts = [...term("Outcome", OUTCOMES[letter.toLowerCase()] + (red ? ", red" : ""))];
  const params = data.words.text[data.harnesses.params[h]];
  if (params) parts.push(...term("Params", params));
  if (ulps !== null) parts.push(...term("Largest error", `${ulps} ULPs, tolerance ${tolerance}`));
  if (nodes !== null) parts.push(...term("Nodes of its graph", String(nodes)));
  if (seconds !== null) parts.push(...term("Time", `${seconds} s`));
  if (message !== null) parts.push(...term("Message", element("pre", {}, data.words.text[message])));
  if (limitation !== null) {
    const { id, reason } = data.limitations[limitation];
    parts.push(...term(`Reason (${id})`, reason));
  }
  const command = column.command.replace("HARNESS", name);
  const show = `python -m harnesses show --name ${name}`;
  parts.push(...term("Repeat it", element("pre", {}, command)));
  parts.push(...term("See its jaxpr", element("pre", {}, show)));
  const history = data.runs.map((each) => {
    const same = each.columns.find((c) => c.title === column.title);
    const then = same ? same.outcomes[h] : " ";
    return element("li", {}, `${then === " " ? "did not run" : OUTCOMES[then.toLowerCase()]} in ${each.title}`);
  });
  parts.push(...term("Runs", element("ul", {}, ...history)));
  return [element("dl", {}, ...parts)];
}

// Keys.

function move(lines, columns) {
  focus.line = Math.min(Math.max(focus.line + lines, 0), view.lines.length - 1);
  focus.column = Math.min(Math.max(focus.column + columns, -1), view.columns.length - 1);
  const grid = $("grid");
  const top = focus.line * ROW;
  const room = grid.clientHeight - $("head").offsetHeight - ROW;
  if (top < grid.scrollTop) grid.scrollTop = top;
  if (top > grid.scrollTop + room) grid.scrollTop = top - room;
  draw();
  const cell = $(`cell-${focus.line}-${focus.column}`);
  if (cell && focus.column >= 0) cell.scrollIntoView({ block: "nearest", inline: "nearest" });
}

const KEYS = {
  ArrowDown: () => move(1, 0), ArrowUp: () => move(-1, 0),
  ArrowRight: () => move(0, 1), ArrowLeft: () => move(0, -1),
  PageDown: () => move(20, 0), PageUp: () => move(-20, 0),
  Home: () => move(-view.lines.length, 0), End: () => move(view.lines.length, 0),
  Enter: open, " ": open,
};

$("grid").addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { close(); $("grid").focus(); }
  if (event.key === "/" && !/INPUT|SELECT/.test(event.target.tagName)) {
    event.preventDefault();
    filters.search.focus();
  }
});

// Beginning.

function expandAll() {
  const families = view.lines.filter((line) => line.level === 0).map((line) => line.key);
  if (families.every((key) => opened.has(key))) opened.clear();
  else families.forEach((key) => opened.add(key));
  redraw();
}

let waiting;
$("grid").addEventListener("scroll", () => {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(draw);
});
$("filters").addEventListener("input", redraw);
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("expand").addEventListener("click", expandAll);
addEventListener("resize", draw);
addEventListener("hashchange", () => { readAddress(); redraw(); });

async function show(text) {
  data = await unpacked(text);
  fillFilters();
  readAddress();
  redraw();
}

async function follow(milliseconds, shown = "") {
  let text = shown;
  try {
    text = await (await fetch("data")).text();
    // What is open stays as it is while nothing new came.
    if (text !== shown) await show(text);
  } catch (problem) {
    $("summary").textContent = `The server does not answer: ${problem.message}`;
  }
  setTimeout(() => follow(milliseconds, text), milliseconds);
}

const refresh = Number($("data").dataset.refresh);
if (refresh) follow(refresh);
else show($("data").textContent);
