"use strict";

const root = document.documentElement;
const charts = new Map(JSON.parse(document.getElementById("charts").textContent).charts.map((one) => [one.key, one]));
const palette = JSON.parse(document.getElementById("charts").textContent).palette;
const figuresDrawn = new Set();

// Choices of the reader survive a reload, if the browser lets a page from a file store anything.
const memory = {
  get(key) { try { return sessionStorage.getItem(key); } catch { return null; } },
  set(key, value) { try { sessionStorage.setItem(key, value); } catch { /* not stored */ } },
};

const token = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const dark = () => root.dataset.theme === "dark";
const colour = (place) => (dark() && palette[place] === "#000000" ? "#ffffff" : palette[place]);

function addColour(trace) {
  const place = trace.meta?.colour;
  if (place === undefined) return trace;
  const shade = trace.meta.tone ? token(`--${trace.meta.tone}`) : colour(place);
  if (trace.meta.band) return { ...trace, fillcolor: shade + "26" };
  const marker = { ...trace.marker, color: shade, line: { ...trace.marker.line, color: shade } };
  return { ...trace, line: { ...trace.line, color: shade }, marker };
}

function wrapWords(words, width) {
  const lines = [""];
  for (const word of words.split(" ")) {
    const last = lines.length - 1;
    if (lines[last] && (lines[last] + word).length > width) lines.push(word);
    else lines[last] += (lines[last] ? " " : "") + word;
  }
  return lines.join("<br>");
}

function makeLayout(chart, traces, narrow) {
  const ink = token("--ink"), rule = token("--rule");
  const axis = { gridcolor: rule, zerolinecolor: rule, linecolor: rule, automargin: true };
  const layout = structuredClone(chart.layout);
  const categories = layout.yaxis.type === "category" ? [...new Set(traces.flatMap((trace) => trace.y))] : [];
  if (categories.length) {
    Object.assign(layout.yaxis, { tickvals: categories, ticktext: categories.map((one) => wrapWords(one, narrow ? 16 : 34)) });
    if (narrow) layout.height *= 1.35;
  }
  for (const shape of layout.shapes ?? []) shape.line.color = token("--quiet");
  return {
    ...layout,
    xaxis: { ...axis, ...layout.xaxis },
    yaxis: { ...axis, ...layout.yaxis },
    paper_bgcolor: token("--ground"), plot_bgcolor: token("--ground"),
    font: { color: ink, family: "system-ui, sans-serif", size: narrow ? 11 : 13 },
    margin: { l: narrow ? 48 : 64, r: 12, t: 12, b: 48 },
    legend: { orientation: "h", yanchor: "bottom", y: 1.02, x: 0 },
    hoverlabel: { bgcolor: token("--raised"), font: { color: ink } },
    hovermode: "closest",
  };
}

// Beside an answer: no axis titles, no legend of dots, and a fixed height.
function makeSmall(layout, dots, narrow) {
  const legend = { ...layout.legend, font: { size: narrow ? 11 : 12 } };
  const margin = dots ? { l: 8, r: 12, t: 8, b: 28 } : { l: 36, r: 12, t: 8, b: 28 };
  const small = { ...layout, height: 240, showlegend: !dots, margin, legend };
  small.xaxis.title = small.yaxis.title = { text: "" };
  return small;
}

function draw(figure) {
  const chart = charts.get(figure.dataset.chart);
  const [method, seeds] = ["method", "seeds"].map((name) => Number(figure.querySelector(`select[name=${name}]`)?.value ?? 0));
  const group = chart.groups[method] ?? chart.groups[0];
  const traces = (group.views[seeds] ?? group.views[0]).traces.map(addColour);
  const place = figure.querySelector(".chart");
  const narrow = place.clientWidth < 560;
  let layout = makeLayout(chart, traces, narrow);
  if ("small" in figure.dataset) layout = makeSmall(layout, layout.yaxis.type === "category", narrow);
  Plotly.react(place, traces, layout, { responsive: true, displaylogo: false, displayModeBar: false });
  figuresDrawn.add(figure);
}

function addChoice(figure, name, words, options, onChange) {
  const [place, label, select] = ["span", "label", "select"].map((tag) => document.createElement(tag));
  const key = `${figure.dataset.chart}/${name}`;
  label.append(words);
  label.htmlFor = select.id = `choice-${key}`;
  place.append(label, select);
  select.name = name;
  options.forEach((option, i) => select.add(new Option(option, i)));
  const before = memory.get(key);
  if (before !== null && before < options.length) select.value = before;
  select.addEventListener("change", () => { memory.set(key, select.value); onChange(); });
  figure.querySelector(".choices").append(place);
}

function addChoices(figure) {
  const chart = charts.get(figure.dataset.chart);
  const names = chart.groups.map((group) => group.name);
  if ("small" in figure.dataset) return;
  figure.querySelector(".choices").replaceChildren();
  if (names.length > 1) addChoice(figure, "method", "Show", names, () => { addSeedChoice(figure); draw(figure); });
  addSeedChoice(figure);
}

// Methods may have been run with different seeds.
function addSeedChoice(figure) {
  const chart = charts.get(figure.dataset.chart);
  const method = Number(figure.querySelector("select[name=method]")?.value ?? 0);
  figure.querySelector("select[name=seeds]")?.parentElement.remove();
  const names = chart.groups[method].views.map((view) => view.name);
  if (names.length > 1) addChoice(figure, "seeds", "Seeds", names, () => draw(figure));
}

function sortBy(table, column, header) {
  const descending = header.getAttribute("aria-sort") === "ascending";
  const body = table.tBodies[0];
  const valueOf = (row) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
  };
  const compare = (a, b) => {
    if ((a === "") !== (b === "")) return a === "" ? 1 : -1; // empty cells stay below
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1; // words below numbers
    const order = typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
    return descending ? -order : order;
  };
  [...body.rows].map((row) => [valueOf(row), row]).sort((a, b) => compare(a[0], b[0])).forEach(([, row]) => body.append(row));
  for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
}

function setTheme(theme) {
  root.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = dark() ? "Light" : "Dark";
  button.setAttribute("aria-pressed", String(dark()));
  figuresDrawn.forEach(draw);
}

const preferred = matchMedia("(prefers-color-scheme: dark)");
setTheme(memory.get("theme") ?? (preferred.matches ? "dark" : "light"));
preferred.addEventListener("change", () => setTheme(preferred.matches ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", () => {
  setTheme(dark() ? "light" : "dark");
  memory.set("theme", root.dataset.theme);
});

document.querySelectorAll("table").forEach((table) =>
  [...table.tHead.rows[0].cells].forEach((header, column) =>
    header.querySelector("button").addEventListener("click", () => sortBy(table, column, header))));

// A chart is drawn when it comes near, so that a page with many charts opens at once.
const near = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
  near.unobserve(entry.target);
  draw(entry.target);
}), { rootMargin: "400px" });
document.querySelectorAll("figure[data-chart]").forEach((figure) => { addChoices(figure); near.observe(figure); });
// A link from the list of sections opens what is folded there.
function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  target?.querySelectorAll(":scope > details").forEach((fold) => { fold.open = true; });
}
addEventListener("hashchange", openTarget);
openTarget();
document.querySelectorAll("details").forEach((fold, place) => {
  if (memory.get(`fold/${place}`) !== null) fold.open = memory.get(`fold/${place}`) === "true";
  fold.addEventListener("toggle", () => memory.set(`fold/${place}`, String(fold.open)));
});
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));
addEventListener("beforeprint", () => document.querySelectorAll("figure[data-chart]").forEach(draw));

if (root.dataset.watch) setTimeout(() => location.reload(), 1000 * Number(root.dataset.watch));
