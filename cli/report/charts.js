// Curves and bars, with Chart.js. A run is told by its dashes and its mark as well as by its colour.

const COLOURS = 8;
const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [4, 2]];
const MARKS = ["circle", "triangle", "rect", "rectRot", "star", "cross", "crossRot"];
const MARKS_SHOWN = 9;  // On a long curve.

const runColour = (index) => colour("run-" + index % COLOURS);

function runStyle(index) {
  return {
    borderColor: runColour(index), backgroundColor: runColour(index), borderDash: DASHES[index % DASHES.length],
    pointStyle: MARKS[index % MARKS.length],
  };
}

/** The line and the mark of a run, in the legend and the tables. */
function drawMark(canvas, index) {
  const {context} = prepare(canvas, 12);
  const style = runStyle(index);
  context.strokeStyle = context.fillStyle = style.borderColor;
  context.lineWidth = 2;
  context.setLineDash(style.borderDash);
  context.beginPath();
  context.moveTo(0, 6);
  context.lineTo(34, 6);
  context.stroke();
  context.setLineDash([]);
  Chart.helpers.drawPoint(context, {pointStyle: style.pointStyle, radius: 4, borderWidth: 2}, 17, 6);
}

/** Marks on some points only, not at the same places on every curve. */
function markRadius(points, index) {
  const every = Math.max(1, Math.ceil(points / MARKS_SHOWN));
  return (context) => (context.dataIndex % every === (index * 2) % every || points === 1 ? 3.5 : 0);
}

function axis(title, more = {}) {
  return {
    title: {display: true, text: title, color: colour("soft")}, grid: {color: colour("grid")}, ticks: {color: colour("soft")}, ...more,
  };
}

function options(x, y) {
  return {
    animation: false, responsive: true, maintainAspectRatio: false, normalized: true,
    interaction: {mode: "nearest", intersect: false},
    plugins: {legend: {display: false}},
    scales: {x, y},
  };
}

/** `curve`: which points of a run; `along`: clock_s or samples. */
function lineChart(runs, {curve, along, x, y, scale = 1, stepped = false}) {
  const datasets = runs.map((run, index) => {
    const points = curve(run);
    const data = points.value.map((figure, k) => ({x: points[along][k], y: figure === null ? NaN : figure * scale}));
    return {
      label: run.name, data, stepped, borderWidth: 1.8, pointBorderWidth: 2, pointRadius: markRadius(data.length, index),
      ...runStyle(index),
    };
  });
  const linear = {type: "linear", min: 0};
  const ticks = {color: colour("soft"), callback: (value) => (value >= 1e4 ? value / 1e3 + " k" : value), maxRotation: 0};
  return {type: "line", data: {datasets}, options: options(axis(x, {...linear, ticks}), axis(y))};
}

/** How late contributions were, in percent of a run's. */
function stalenessChart(runs) {
  const most = Math.max(...runs.map((run) => run.staleness.findLastIndex((count) => count > 0)));
  const last = Math.max(...runs.map((run) => run.staleness.length)) - 1;
  const labels = Array.from({length: Math.max(1, most) + 1}, (_, late) => (late === last ? late + "+" : String(late)));
  const datasets = runs.map((run, index) => {
    const all = run.staleness.reduce((sum, count) => sum + count, 0);
    const data = labels.map((_, late) => (all ? (run.staleness[late] ?? 0) / all * 100 : null));
    return {label: run.name, data, borderWidth: 1, borderColor: runColour(index), backgroundColor: barFill(index), categoryPercentage: 0.92, barPercentage: 1};
  });
  const y = axis("% of a run's contributions", {min: 0});
  return {type: "bar", data: {labels, datasets}, options: options(axis("versions late"), y)};
}

/** Every second run's bars are striped. */
function barFill(index) {
  if (index % 2 === 0) return runColour(index);
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  pen.fillStyle = runColour(index);
  pen.fillRect(0, 0, 6, 3);
  return pen.createPattern(tile, "repeat");
}
