// Timelines: drawn on canvases of our own. An activity is told by its height and hatching as well as by its colour.

const ACTIVITIES = {
  compute: {height: 1, words: "computes"},
  abandoned: {height: 1, hatch: "cross", words: "computes until another ends the update (abandoned; finished mini-batches count)"},
  evaluate: {height: 1, hatch: "dots", words: "evaluates the averaged model"},
  wait: {height: 0.45, hatch: "slant", words: "waits for an averaging"},
  hold: {height: 0.12, hatch: "bars", words: "stands by while another evaluates or the job ends (hold)"},
  average: {height: 1, words: "averages (node)"},
  merge: {height: 0.45, words: "merges what came late (node)"},
};
const NAME_WIDTH = 74;
const AXIS_HEIGHT = 20;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

/** A context whose unit is a CSS pixel, on a blank canvas as wide as its place. */
function prepare(canvas, height) {
  const width = canvas.clientWidth;
  const scale = window.devicePixelRatio || 1;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  return {context, width};
}

/** The colour of an activity, hatched with the page's. */
function fillOf(context, activity) {
  const {hatch} = ACTIVITIES[activity];
  if (!hatch) return colour(activity);
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  pen.fillStyle = colour(activity);
  pen.fillRect(0, 0, 6, 6);
  pen.strokeStyle = pen.fillStyle = colour("card");
  pen.lineWidth = 1.2;
  pen.beginPath();
  if (hatch === "dots") pen.fillRect(1, 1, 2, 2);
  if (hatch === "bars") pen.fillRect(0, 0, 2, 6);
  if (hatch === "slant" || hatch === "cross") { pen.moveTo(-1, 7); pen.lineTo(7, -1); }
  if (hatch === "cross") { pen.moveTo(-1, -1); pen.lineTo(7, 7); }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}

function seconds(value) {
  if (value >= 100) return value.toFixed(0) + " s";
  if (value >= 1) return value.toFixed(value < 10 ? 2 : 1) + " s";
  return (value * 1000).toFixed(value < 0.01 ? 2 : 1) + " ms";
}

/** About `count` round values between two. */
function ticks(begin, end, count) {
  const rough = (end - begin) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const values = [];
  for (let k = Math.ceil(begin / step); k * step <= end + 1e-12; ++k) values.push(k * step);
  return {step, values};
}

/** Row names and the time axis; returns where a time is. */
function drawFrame(context, width, rows, rowHeight, begin, end) {
  const at = (time) => NAME_WIDTH + (time - begin) / (end - begin) * (width - NAME_WIDTH - 8);
  const bottom = rows.length * rowHeight;
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = colour("text");
  rows.forEach((name, k) => context.fillText(name, 0, (k + 0.5) * rowHeight, NAME_WIDTH - 6));
  const {step, values} = ticks(begin, end, Math.max(2, Math.floor(width / 130)));
  const unit = step >= 1 ? [1, "s", 0] : step >= 0.1 ? [1, "s", 1] : [1000, "ms", step >= 0.001 ? 0 : 2];
  for (const value of values) {
    context.fillStyle = colour("grid");
    context.fillRect(Math.round(at(value)), 0, 1, bottom);
    const text = (value * unit[0]).toFixed(unit[2]) + " " + unit[1];
    context.fillStyle = colour("soft");
    context.textAlign = at(value) > width - 40 ? "right" : at(value) < NAME_WIDTH + 20 ? "left" : "center";
    context.fillText(text, at(value), bottom + AXIS_HEIGHT / 2 + 2);
  }
  context.textAlign = "left";
  return at;
}

/** The whole run: of each slice of time, what a worker did in it, stacked. */
function drawShares(canvas, timeline) {
  const rowHeight = 30;
  const {context, width} = prepare(canvas, timeline.tracks.length * rowHeight + AXIS_HEIGHT);
  const at = drawFrame(context, width, timeline.tracks, rowHeight, 0, timeline.duration_s);
  timeline.shares.forEach((shares, row) => {
    const full = rowHeight - 6;
    const slices = Math.max(0, ...Object.values(shares).map((percents) => percents.length));
    const filled = new Array(slices).fill(0);
    for (const activity of Object.keys(ACTIVITIES)) {
      const percents = shares[activity];
      if (!percents) continue;
      context.fillStyle = fillOf(context, activity);
      percents.forEach((percent, k) => {
        const part = Math.min(percent, 100 - filled[k]) / 100 * full;
        const left = at(k / slices * timeline.duration_s);
        const right = at((k + 1) / slices * timeline.duration_s);
        const bottom = (row + 1) * rowHeight - 3 - filled[k] / 100 * full;
        if (part > 0) context.fillRect(left, bottom - part, right - left + 0.3, part);
        filled[k] = Math.min(100, filled[k] + percent);
      });
    }
    context.fillStyle = colour("line");
    context.fillRect(NAME_WIDTH, (row + 1) * rowHeight - 3, width - NAME_WIDTH - 8, 1);
  });
}

/** Some updates, exactly; `tell` gets what is under the pointer. */
function drawExcerpt(canvas, timeline, excerpt, tell) {
  const rowHeight = 24;
  const {context, width} = prepare(canvas, timeline.tracks.length * rowHeight + AXIS_HEIGHT);
  const at = drawFrame(context, width, timeline.tracks, rowHeight, excerpt.begin_s, excerpt.end_s);
  const fills = {};
  const boxes = [];
  for (const [track, activity, begin, end] of excerpt.spans) {
    const left = at(Math.max(begin, excerpt.begin_s));
    const right = Math.max(left + 0.6, at(Math.min(end, excerpt.end_s)));
    const height = ACTIVITIES[activity].height * (rowHeight - 6);
    const gap = right - left > 4 ? 0.7 : 0;  // Neighbours of one kind stay apart.
    context.fillStyle = fills[activity] ??= fillOf(context, activity);
    context.fillRect(left, (track + 1) * rowHeight - 3 - height, right - left - gap, height);
    boxes.push({track, left, right, text: `${timeline.tracks[track]} ${ACTIVITIES[activity].words}: ${seconds(end - begin)}`});
  }
  canvas.onpointermove = (event) => {
    const track = Math.floor(event.offsetY / rowHeight);
    const under = boxes.findLast((box) => box.track === track && box.left - 1 <= event.offsetX && event.offsetX <= box.right + 1);
    tell(under ? under.text : "");
  };
}

/** The sample of an activity in the key. */
function drawSample(canvas, activity) {
  const {context} = prepare(canvas, 12);
  const height = Math.max(2, ACTIVITIES[activity].height * 12);
  context.fillStyle = fillOf(context, activity);
  context.fillRect(0, 12 - height, 34, height);
}
