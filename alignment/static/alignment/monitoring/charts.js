// Draws the charts of the monitoring pages with uPlot, from the rows of the table beside each chart. Every
// point is a link or a named mark over the canvas: one tab stop a chart, arrow keys move along the line.

const DAY = 86400;
const HEIGHTS = { line: 240, small: 92, bars: 150, days: 150 };
const SPAN = 0.2; // least height of a small chart's axis, as a share
const charts = new Map(); // figure → uPlot

const seconds = (day) => Date.parse(`${day}T00:00:00Z`) / 1000;
const number = (text) => (text === "" || text === undefined ? null : Number(text));
const rowsOf = (figure) => [...figure.querySelectorAll("tbody tr[data-value]")];

// A colour token as the canvas takes it: the browser resolves light-dark().
function colour(figure, token) {
  const probe = document.createElement("span");
  probe.hidden = true;
  figure.append(probe);
  probe.style.color = `var(${token})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function faint(found, share) {
  return found.replace(/^rgb\((.+)\)$/, `rgba($1, ${share})`);
}

// Shares have two decimals; differences in percentage points a sign and one.
const isPoints = (figure) => figure.dataset.axis === "points";
const signed = (value) => `${value < 0 ? "−" : value > 0 ? "+" : ""}${Math.abs(value).toFixed(1)}`;
const formatOf = (figure) => (isPoints(figure) ? signed : (value) => value.toFixed(2));

// ---------- lines with bands

// One line, low and high for each part: uPlot joins no points across parts.
function columns(rows) {
  const parts = [...new Set(rows.map((row) => row.dataset.part))];
  const data = [rows.map((row) => seconds(row.dataset.at))];
  for (const part of parts) {
    for (const name of ["value", "low", "high"]) {
      data.push(rows.map((row) => (row.dataset.part === part ? number(row.dataset[name]) : null)));
    }
  }
  return { parts, data };
}

function axisRange(figure, rows) {
  const values = rows.flatMap(({ dataset }) => [dataset.value, dataset.low, dataset.high]).map(number);
  const known = values.filter((value) => value !== null);
  if (isPoints(figure)) return pointsRange(known);
  if (!known.length || figure.closest("[data-axis=whole]")) return [0, 1];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const middle = (low + high) / 2;
  const half = Math.max(SPAN / 2, (high - low) / 2 + 0.02);
  const start = Math.max(0, Math.min(middle - half, 1 - 2 * half));
  return [start, Math.min(1, start + 2 * half)];
}

// Zero is in sight, and the first days' wide bands do not squeeze the rest.
function pointsRange(known) {
  const sorted = known.map(Math.abs).sort((a, b) => a - b);
  const most = Math.max(2, 1.3 * (sorted[Math.floor(0.9 * sorted.length)] ?? 0));
  return [-most, most];
}

function drawZero(chart, ink) {
  const { ctx, bbox } = chart;
  const y = chart.valToPos(0, "y", true);
  ctx.save();
  ctx.strokeStyle = ink;
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}

// Vertical marks: dashed for a new judge, solid for a new version of the bot.
function drawMarks(chart, marks, ink) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.strokeStyle = ink;
  ctx.lineWidth = devicePixelRatio;
  for (const mark of marks) {
    const x = chart.valToPos(seconds(mark.dataset.mark), "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.setLineDash(mark.dataset.judge ? [4 * devicePixelRatio, 3 * devicePixelRatio] : []);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function axes(figure, { y, small, x }) {
  const ink = colour(figure, "--ink-3");
  const grid = { stroke: colour(figure, "--line"), width: 1 };
  const font = `11px ${getComputedStyle(document.body).fontFamily}`;
  const common = { stroke: ink, font, grid, ticks: { show: false } };
  return [
    { ...common, grid: { show: false }, size: small ? 18 : 28, space: 60, ...x },
    { ...common, size: small ? 34 : 44, space: small ? 30 : 40, values: (_, all) => all.map(y) },
  ];
}

// Labels stand under points, the newest first; as many as fit.
function pointSplits(chart, rows) {
  const days = [...new Set(rows.map((row) => seconds(row.dataset.at)))];
  const every = Math.ceil(days.length / Math.max(1, Math.floor(chart.bbox.width / devicePixelRatio / 56)));
  return days.filter((_, at) => (days.length - 1 - at) % every === 0);
}

const dayName = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const dayNames = (_, all) => all.map((at) => (at % DAY ? "" : dayName.format(at * 1000)));

function lineOptions(figure, rows, parts) {
  const judge = colour(figure, "--judge");
  const small = figure.dataset.chart === "small";
  const hidden = { stroke: "transparent", width: 0, points: { show: false } };
  const line = { stroke: judge, width: 2, points: { show: true, size: small ? 5 : 7, fill: judge } };
  const marks = [...figure.querySelectorAll("[data-mark]")];
  const splits = (chart) => pointSplits(chart, rows);
  const days = [seconds(figure.dataset.from) - 2 * DAY, seconds(figure.dataset.to) + 2 * DAY];
  return {
    series: [{}, ...parts.flatMap(() => [line, hidden, hidden])],
    bands: parts.map((_, at) => ({ series: [3 * at + 3, 3 * at + 2], fill: faint(judge, 0.15) })),
    scales: {
      x: { time: true, range: days },
      y: { range: axisRange(figure, rows) },
    },
    axes: axes(figure, { y: formatOf(figure), small, x: { values: dayNames, splits } }),
    hooks: {
      draw: [
        (chart) => drawMarks(chart, marks, colour(figure, "--ink-2")),
        (chart) => isPoints(figure) && drawZero(chart, colour(figure, "--ink-3")),
      ],
      ready: [(chart) => addPoints(chart, rows, figure)],
    },
  };
}

// ---------- bars

function barOptions(figure, rows) {
  const unit = figure.dataset.unit || "";
  const days = figure.dataset.chart === "days";
  const fill = colour(figure, days ? "--ink-3" : "--judge");
  const shown = days && [seconds(figure.dataset.from) - DAY, seconds(figure.dataset.to) + DAY];
  const most = Math.max(...rows.map((row) => number(row.dataset.value)), 0) || 1;
  const money = (value) => `${unit}${value < 1 ? value.toFixed(2) : Math.round(value)}`;
  const whole = (value) => (Number.isInteger(value) ? `${value}` : "");
  const share = (value) => `${Math.round(100 * value)}%`;
  const y = unit === "chats" ? whole : unit ? money : share;
  const labels = (_, all) => all.map((at) => rows[at]?.dataset.label ?? "");
  const splits = (chart) => pointSplits(chart, rows);
  const paths = uPlot.paths.bars({ size: [0.7, 28], align: days ? 0 : 1 });
  return {
    series: [{}, { stroke: fill, fill, paths, points: { show: false } }],
    scales: {
      x: days ? { time: true, range: shown } : { time: false, range: [0, rows.length] },
      y: { range: [0, 1.1 * most] },
    },
    axes: axes(figure, { y, x: days ? { values: dayNames, splits } : { values: labels, space: 24 } }),
  };
}

// ---------- points that can be reached

function pointElement(row, figure) {
  const link = row.querySelector("th a");
  const point = document.createElement(link ? "a" : "span");
  point.className = "point";
  if (link) point.href = link.href;
  else point.setAttribute("role", "img");
  const { low, high, value, n } = row.dataset;
  const format = formatOf(figure);
  const range = low ? `, ${format(Number(low))} to ${format(Number(high))}` : "";
  const name = (link ?? row.querySelector("th").firstChild).textContent;
  const counted = figure.dataset.counted || "judged chats";
  const below = row.dataset.below ? ", below baseline" : "";
  const words = `${name.trim()}: ${format(Number(value))}${range}, ${n} ${counted}${below}`;
  point.classList.toggle("below", Boolean(below));
  point.setAttribute("aria-label", words);
  point.title = point.getAttribute("aria-label");
  point.tabIndex = -1;
  return point;
}

function addPoints(chart, rows, figure) {
  const known = rows.filter((row) => row.dataset.value !== "");
  const points = known.map((row) => [row, pointElement(row, figure)]);
  points.at(-1)?.[1].setAttribute("tabindex", "0");
  chart.over.append(...points.map(([, point]) => point));
  for (const [row, point] of points) {
    point.style.left = `${chart.valToPos(seconds(row.dataset.at), "x")}px`;
    point.style.top = `${chart.valToPos(Number(row.dataset.value), "y")}px`;
  }
  chart.over.addEventListener("keydown", (event) => move(event, points.map(([, point]) => point)));
}

const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

function move(event, points) {
  const at = points.indexOf(document.activeElement);
  if (at < 0 || !(event.key in STEPS) || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  const to = Math.min(points.length - 1, Math.max(0, at + STEPS[event.key]));
  points[at].tabIndex = -1;
  points[to].tabIndex = 0;
  points[to].focus();
}

// ---------- drawing

function draw(figure) {
  charts.get(figure)?.destroy();
  charts.delete(figure);
  const rows = rowsOf(figure);
  const place = figure.querySelector(".plot-area");
  if (!rows.length || !place.clientWidth) return;
  const kind = figure.dataset.chart;
  const isLine = kind === "line" || kind === "small";
  const { parts, data } = isLine ? columns(rows) : { parts: [], data: barData(rows, kind) };
  const options = isLine ? lineOptions(figure, rows, parts) : barOptions(figure, rows);
  const size = { width: place.clientWidth, height: HEIGHTS[kind] };
  const tzDate = (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC");
  const fixed = { legend: { show: false }, cursor: { show: false }, padding: [8, 8, 0, 0], tzDate };
  const chart = new uPlot({ ...size, ...fixed, ...options }, data, place);
  chart.root.setAttribute("role", "group");
  chart.root.setAttribute("aria-label", figure.dataset.name);
  charts.set(figure, chart);
}

function barData(rows, kind) {
  const at = kind === "days" ? (row) => seconds(row.dataset.at) : (_, index) => index;
  return [rows.map(at), rows.map((row) => number(row.dataset.value))];
}

function start() {
  const figures = [...document.querySelectorAll("figure[data-chart]")];
  figures.forEach(draw);
  let waits = 0;
  const again = () => {
    cancelAnimationFrame(waits);
    waits = requestAnimationFrame(() => figures.forEach(draw));
  };
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) again();
    width = innerWidth;
  });
  new MutationObserver(again).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
}

start();
