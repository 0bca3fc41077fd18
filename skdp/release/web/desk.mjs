// The page of a release: charts, questions and answers, drawn from what `page.mjs` answers; both are
// one script in a page. Texts of a release become text nodes, never HTML: names may hold anything.

import { clip, endsOf, english, inWords, python, read, short, shown } from "./page.mjs";

// An element with attributes, listeners (`onclick`), lengths (`--high`) and children.
function make(tag, attributes = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") found.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) found.style.setProperty(name, `${100 * value}%`);
    else if (value === true) found.setAttribute(name, "");
    else if (value !== false && value !== null) found.setAttribute(name, value);
  }
  found.append(...children.filter((child) => child !== null));
  return found;
}

const soft = (words, tag = "p") => make(tag, { class: "soft" }, words);
const cut = (words, most = 120) => make("span", { class: "cut" }, short(words, most));
const headOf = (scope, words) => make("th", { scope }, cut(words));
const button = (words, onclick, more = {}) =>
  make("button", { type: "button", onclick, ...more }, words);
const details = (summary, ...children) =>
  make("details", {}, make("summary", {}, summary), ...children);

function select(label, name, options, chosen, onChange) {
  const field = make("select", { name, onchange: () => onChange(field.value) });
  options.forEach(([value, words]) => {
    field.append(make("option", { value, selected: value === chosen }, short(words)));
  });
  return make("label", {}, label, field);
}

// A bar with its margin of error, of a share of the longest one.
const bar = (low, at, high) => make("i", { "--low": low, "--at": at, "--high": high });

// The bars of a column: of bins side by side, of single values one below the other. `pick` is told
// which one was chosen.
function chart(column, pick) {
  const reached = ([, , count, margin]) => [count - (margin ?? 0), count, count + (margin ?? 0)];
  const most = Math.max(1e-9, ...column.bars.map((each) => reached(each)[2]));
  const all = column.bars.map((each, i) => {
    const [label, condition, count, margin] = each;
    const number = english(count) + (margin === null ? "" : ` ± ${english(margin)}`);
    const words = `${short(label, 200)}: ${number}`;
    const more = { title: words, "aria-label": `${words} records`, tabindex: i ? -1 : 0 };
    const texts = "from" in condition ? [] : [cut(label), make("span", {}, number)];
    const drawn = bar(...reached(each).map((end) => clip(end / most, 0, 1)));
    const found = button("", () => pick(condition), more);
    found.append(...texts, drawn);
    return found;
  });
  const bins = column.bars.filter(([, condition]) => "from" in condition);
  const onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const next = all[all.indexOf(event.target) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
  const label = `Records by ${short(column.name, 200)}`;
  const found = make("div", { class: "chart", role: "group", "aria-label": label, onkeydown });
  if (bins.length) {
    const places = [0, 1, 2, 3].map((third) => Math.round((third * (bins.length - 1)) / 3));
    const ends = places.map((at, third) => bins[at][0].split(" to ").at(third < 3 ? 0 : -1));
    // Of long texts only the first and the last one have room.
    const fitting = ends.filter((text, third) => third % 3 === 0 || text.length < 8);
    const ticks = [...new Set(fitting)].map((text) => make("span", {}, short(text, 14)));
    found.append(
      soft(english(most)),
      make("div", { class: "bins" }, ...all.slice(0, bins.length)),
      make("div", { class: "ticks soft" }, ...ticks),
    );
  }
  found.append(...all.slice(bins.length));
  return found;
}

// Kinds of questions, and which columns they ask for: by what a column must have.
const KINDS_OF_QUESTIONS = {
  count: ["How many records"],
  share: ["Share of records"],
  mean: ["Mean of a column", ["Column", "column", "numbers"]],
  quantile: ["Median or quantile", ["Column", "column", "pieces"]],
  cross: ["Cross table of two columns", ["Rows", "rows", "groups"], ["Across", "across", "groups"]],
  means: ["Means by group", ["Column", "column", "numbers"], ["By", "rows", "groups"]],
};
const part = (name) => document.querySelector(`.${name}`);

class Desk {
  constructor(release) {
    Object.assign(this, { release, columns: release.columns });
    this.question = {
      kind: "count",
      column: Math.max(this.columns.findIndex(({ numbers }) => numbers), 0),
      q: 0.5,
      rows: 0,
      across: Math.min(1, this.columns.length - 1),
      level: release.data.level,
      where: new Map(),
    };
    this.drawColumns();
    this.follow();
    window.addEventListener("hashchange", () => this.follow());
  }

  // Ask what the link asks, if that can be asked.
  follow() {
    const before = this.question;
    try {
      const asked = JSON.parse(decodeURIComponent(window.location.hash.slice("#q=".length)));
      this.question = { ...before, ...asked, where: new Map(asked.where) };
      this.draw();
    } catch {
      this.question = before;
      this.draw();
    }
  }

  draw() {
    this.drawConditions();
    this.changed();
  }

  // Draw what follows from the question but its conditions.
  changed() {
    this.drawFields();
    this.drawAnswer();
    const asked = { ...this.question, where: [...this.question.where] };
    try {
      window.history.replaceState(null, "", `#q=${encodeURIComponent(JSON.stringify(asked))}`);
    } catch {
      // A frame without an address has no links.
    }
    document.querySelectorAll(".chart").forEach((drawn, place) => {
      drawn.querySelectorAll("button").forEach((each, i) => {
        each.setAttribute("aria-pressed", this.isPicked(place, this.columns[place].bars[i][1]));
      });
    });
  }

  set(change) {
    Object.assign(this.question, change);
    this.draw();
  }

  drawFields() {
    const { question, columns, release } = this;
    const focused = document.activeElement?.name;
    const [, ...asked] = KINDS_OF_QUESTIONS[question.kind];
    const kinds = Object.entries(KINDS_OF_QUESTIONS).map(([kind, [words]]) => [kind, words]);
    const fields = [select("Question", "kind", kinds, question.kind, (kind) => this.set({ kind }))];
    for (const [label, key, needed] of asked) {
      const named = columns.map((column, place) => [place, column.name]);
      const options = named.filter(([place]) => columns[place][needed]);
      const fits = options.some(([place]) => place === question[key]);
      if (options.length && !fits) [[question[key]]] = options;
      const choose = (place) => this.set({ [key]: Number(place) });
      fields.push(select(label, key, options, question[key], choose));
    }
    if (question.kind === "quantile") {
      const onchange = ({ target }) =>
        this.set({ q: clip(Math.round(Number(target.value)) || 50, 1, 99) / 100 });
      const value = Math.round(100 * question.q);
      const share = make("input", { name: "q", type: "number", min: 1, max: 99, value, onchange });
      fields.push(make("label", {}, "Percent below it", share));
    }
    const { levels, estimated } = release.data;
    const offered = Object.keys(levels).map((level) => [Number(level), `${level}%`]);
    const choose = (level) => this.set({ level: Number(level) });
    if (!estimated) fields.push(select("Confidence", "level", offered, question.level, choose));
    part("fields").replaceChildren(...fields);
    if (focused) part("fields").querySelector(`[name="${focused}"]`)?.focus();
  }

  drawConditions() {
    const { where } = this.question;
    const parts = [...where.keys()].map((place) => this.editor(place));
    const named = this.columns.map(({ name }, place) => [place, name]);
    const free = named.filter(([place]) => !where.has(place));
    const options = [["", "Choose a column, or click on charts"], ...free];
    const add = (value) => {
      const place = Number(value);
      const { bins } = this.columns[place];
      this.put(place, bins ? { from: 0, to: bins - 1 } : { codes: [0] });
      part("conditions").querySelector(`[data-place="${place}"] :is(input, select)`)?.focus();
    };
    if (free.length) parts.push(select("Only records where", "where", options, "", add));
    if (where.size) {
      const clear = button("Remove all conditions", () => this.set({ where: new Map() }));
      parts.push(make("div", { class: "row" }, clear));
    }
    part("conditions").replaceChildren(...parts);
  }

  // Set or remove a condition; a share stays one of the records that it is of.
  put(place, condition, draw = true) {
    const { where } = this.question;
    if (condition) where.set(place, { among: where.get(place)?.among, ...condition });
    else where.delete(place);
    if (draw) this.draw();
    else this.changed();
  }

  editor(place) {
    const column = this.columns[place];
    const condition = this.question.where.get(place);
    const legend = make("legend", {}, cut(column.name, 200));
    const body = column.bins ? this.range(place, condition) : this.choices(place, condition);
    const found = make("fieldset", { "data-place": place }, legend, ...body);
    if (this.question.kind === "share") {
      const onchange = ({ target }) =>
        this.put(place, { ...this.question.where.get(place), among: target.checked });
      const box = make("input", { type: "checkbox", checked: condition.among ?? false, onchange });
      found.append(make("label", { class: "tick" }, box, "The share is of these records"));
    }
    const label = `Remove the condition on ${short(column.name, 100)}`;
    const remove = button("Remove", () => this.put(place, null), { "aria-label": label });
    found.append(make("div", { class: "row" }, remove));
    return found;
  }

  // From and to: ends of bins, so that what is asked is what was counted; or a value without a bin.
  range(place, { codes, from, to }) {
    const column = this.columns[place];
    const { bins, labels } = column;
    const all = labels.map((label, code) => [code, label]);
    const ends = (end) => all.slice(0, bins).map(([bin]) => [bin, endsOf(column, bin)[end]]);
    const first = (value) => {
      const at = Number(value);
      this.put(place, at < bins ? { from: at, to: Math.max(at, to ?? 0) } : { codes: [at] });
    };
    const last = (value) =>
      this.put(place, { from: Math.min(Number(value), from ?? 0), to: Number(value) });
    const firsts = [...ends(0), ...all.slice(bins)];
    const both = [
      select("From", `from ${place}`, firsts, from ?? codes[0], first),
      select("To", `to ${place}`, ends(1), to, last),
    ];
    return [make("div", { class: "between" }, ...both)];
  }

  choices(place, { codes }) {
    const { labels, name } = this.columns[place];
    const chosen = new Set(codes);
    const boxes = labels.map((text, code) => {
      const onchange = () => {
        if (!chosen.delete(code)) chosen.add(code);
        const all = [...chosen].sort((a, b) => a - b);
        this.put(place, all.length ? { codes: all } : null, !all.length);
      };
      const field = make("input", { type: "checkbox", checked: chosen.has(code), onchange });
      return make("label", {}, field, cut(text, 300));
    });
    const label = `Values of ${short(name, 100)}`;
    const found = make("div", { class: "choices", role: "group", "aria-label": label }, ...boxes);
    if (labels.length <= 12) return [found];
    const oninput = ({ target: { value } }) => boxes.forEach((each, code) =>
      (each.hidden = !labels[code].toLowerCase().includes(value.toLowerCase())));
    const search = make("input", { type: "search", oninput });
    return [make("label", {}, `Find among ${english(labels.length)} values`, search), found];
  }

  drawAnswer() {
    const { release, question } = this;
    const load = `import skdp\n\nrelease = skdp.Synopsis.load(${JSON.stringify(release.data.source)})`;
    const code = make("pre", { tabindex: 0 }, `${load}\n${python(release, question)}`);
    const refused = release.model ? release.refuse(question)
      : "This page cannot answer this release, but Python can: this line gives the answer.";
    if (refused) {
      part("answer").replaceChildren(make("p", {}, refused), code, copier("Copy as Python", code));
      return;
    }
    const answer = release.answer(question);
    const words = inWords(release, question, answer);
    const parts = answer.cells ? this.tabled(answer, words) : this.single(answer, words);
    const row = parts.pop();
    part("answer").replaceChildren(
      ...parts,
      details("What the interval covers", soft(answer.text)),
      details("As Python", code, copier("Copy as Python", code)),
      make("div", { class: "row" }, row),
    );
  }

  // An answer, its interval drawn, and the sentence to quote.
  single(answer, words) {
    const [value, lower, upper] = shown(this.release, this.question, answer);
    const interval = this.release.interval(this.question.level, short(lower), short(upper));
    const reach = (answer.upper - answer.lower || Math.abs(answer.upper) || 1) * 0.35;
    const [low, high] = [answer.lower - reach, answer.upper + reach];
    const ends = [answer.lower, answer.value ?? NaN, answer.upper];
    const drawn = bar(...ends.map((end) => clip((end - low) / (high - low), 0, 1)));
    drawn.hidden = !Number.isFinite(answer.value) || this.release.data.estimated;
    const sentence = make("blockquote", {}, words);
    return [
      make("p", { class: "value" }, cut(value)),
      make("p", {}, interval),
      make("div", { class: "interval", role: "img", "aria-label": interval }, drawn),
      sentence,
      copier("Copy the sentence", sentence),
    ];
  }

  tabled({ cells, groups }, words) {
    const { release, question, columns } = this;
    const most = Math.max(1e-300, ...cells.map(({ value }) => value || 0));
    const drawn = cells.map((cell) => {
      const [value, lower, upper] = shown(release, question, cell);
      const shade = question.kind === "cross" ? clip(cell.value / most, 0, 1) : 0;
      const ends = release.data.estimated ? "" : `${lower} to ${upper}`;
      return make("td", { "--at": shade }, `${value} `, soft(ends, "span"));
    });
    const [rows, across] = groups;
    const head = across ? across.map(([label]) => label) : ["Mean"];
    const heads = [columns[question.rows].name, ...head].map((label) => headOf("col", label));
    const lines = rows.map(([label], i) =>
      make("tr", {}, headOf("row", label), ...drawn.slice(i * head.length, (i + 1) * head.length)));
    const named = { tabindex: 0, role: "region", "aria-label": "Table of the answer" };
    const top = make("thead", {}, make("tr", {}, ...heads));
    const whole = make("table", {}, top, make("tbody", {}, ...lines));
    const table = make("div", { class: "scroll", ...named }, whole);
    const texts = (row) => [...row.cells].map(({ textContent }) => textContent).join("\t");
    const copied = [...whole.rows].map(texts).join("\n");
    return [make("h3", {}, words), table, copier("Copy the table", table, copied)];
  }

  drawColumns() {
    const cards = this.columns.map((column, place) =>
      make("figure", { class: "card" },
        make("h3", {}, cut(column.name, 300)),
        chart(column, (condition) => this.pick(place, condition)),
        make("figcaption", {}, cut(column.caption, 300))));
    part("cards").replaceChildren(...cards);
  }

  isPicked(place, { codes, from, to }) {
    const own = this.question.where.get(place);
    if (codes) return codes.every((code) => own?.codes?.includes(code));
    return own?.from <= from && to <= own?.to;
  }

  // Bars of bins make the range longer, and shorter at its ends; other bars are chosen one by one.
  pick(place, { codes, from, to }) {
    const own = this.question.where.get(place);
    const on = this.isPicked(place, { codes, from, to });
    if (codes) {
      const others = (own?.codes ?? []).filter((code) => !codes.includes(code));
      const all = on ? others : [...others, ...codes].sort((a, b) => a - b);
      this.put(place, all.length ? { codes: all } : null);
    } else if (!own || own.codes) this.put(place, { from, to });
    else if (!on) this.put(place, { from: Math.min(own.from, from), to: Math.max(own.to, to) });
    else if (own.from === from) this.put(place, own.to > to ? { from: to + 1, to: own.to } : null);
    else this.put(place, own.to === to ? { from: own.from, to: from - 1 } : { from, to });
  }
}

// A button that copies the text of an element, or else marks it.
function copier(words, element, text = element.textContent) {
  const onclick = async ({ target }) => {
    try {
      await navigator.clipboard.writeText(text);
      target.textContent = "Copied";
    } catch {
      window.getSelection().selectAllChildren(element);
      target.textContent = "Copy what is marked";
    }
  };
  return button(words, onclick);
}

// Parts of the page, also in a frame whose address is not its own.
function jump(event) {
  event.preventDefault();
  const target = document.querySelector(event.currentTarget.getAttribute("href"));
  target.focus({ preventScroll: true });
  target.scrollIntoView();
}

async function start() {
  document.querySelectorAll('a[href^="#"]').forEach((link) => link.addEventListener("click", jump));
  try {
    const release = await read(document.getElementById("data").textContent);
    release.title = document.title;
    new Desk(release);
  } catch (error) {
    const told = document.getElementById("damage");
    told.append(` ${error.message}`);
    told.hidden = false;
  }
  document.documentElement.dataset.ready = "yes";
}

if (typeof document !== "undefined") start();
