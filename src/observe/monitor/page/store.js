// What the page knows: the last answer of the feed, and the events of the last minutes.

const EVENTS_MAX = 20000;
const KEPT_NS = 120e9;

export class Store {
  constructor() { this.clear(); }

  clear() {
    this.state = null;          // the last answer
    this.actions = new Map();   // by number; what is over replaces what was sent
    this.requests = [];         // in the order of their answers
    this.counts = [];           // {at, outcomes, models}: one per answer, of the last two minutes
    this.lost = 0;
  }

  add(answer) {
    if (answer.full || (this.state && this.state.process !== answer.process)) this.clear();
    this.state = answer;
    this.lost += answer.lost;
    // Of actions under way, the end may be among what was lost.
    if (answer.lost > 0) {
      for (const [id, action] of this.actions) if (action.status === undefined) this.actions.delete(id);
    }
    for (const action of answer.actions) {
      // Again at the end, so that the oldest stand first.
      this.actions.delete(action.id);
      this.actions.set(action.id, action);
    }
    this.requests.push(...answer.requests);
    this.counts.push({
      at: answer.now,
      outcomes: answer.outcomes,
      models: new Map(answer.models.map((model) => [model.name, model.outcomes])),
    });
    this.forget(answer.now - KEPT_NS);
  }

  forget(before) {
    for (const [id, action] of this.actions) {
      if (this.actions.size <= EVENTS_MAX && (action.end ?? action.sent ?? before) >= before) break;
      this.actions.delete(id);
    }
    const keep = this.requests.findIndex((request) => request.finished >= before);
    const cut = Math.max(keep < 0 ? this.requests.length : keep, this.requests.length - EVENTS_MAX);
    if (cut > 0) this.requests.splice(0, cut);
    while (this.counts.length > 2 && this.counts[0].at < before) this.counts.shift();
  }

  // The counts `seconds` ago, or the oldest that there are.
  countsBefore(seconds) {
    const wanted = this.state.now - seconds * 1e9;
    return this.counts.findLast((count) => count.at <= wanted) ?? this.counts[0];
  }
}

// The value below which a share of `sorted` lies; undefined of none.
export function quantile(sorted, share) {
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] : undefined;
}

export const total = (outcomes) => Object.values(outcomes).reduce((sum, count) => sum + count, 0);
export const ms = (ns, digits = 2) => (ns === undefined ? '–' : (ns / 1e6).toFixed(digits));
export const rate = (number) => (number >= 100 ? number.toFixed(0) : number.toFixed(1));

// Rows of text only: what a server or a client named is never read as HTML.
export function fill(table, rows, classes = []) {
  const body = table.tBodies[0];
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((cells, index) => {
    const row = body.rows[index] ?? body.insertRow();
    cells.forEach((cell, column) => {
      const place = row.cells[column] ?? row.insertCell();
      const text = String(cell);
      if (place.textContent !== text) place.textContent = text;
      if (classes[column] && place.className !== classes[column]) place.className = classes[column];
    });
  });
  return body;
}

// The colours of style.css, as they are now, light or dark.
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(['ink', 'soft', 'rule', 'card', 'exec', 'load', 'failed', 'served', 'accent'].map((name) => [name, of(name)]));
}

// A context that draws in CSS pixels, on a canvas of this height.
export function context(canvas, height) {
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext('2d');
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = '12px system-ui, "DejaVu Sans", sans-serif';
  return [pen, width];
}

// Diagonal lines, which tell a bar from others without its colour.
export function hatch(pen, colour) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  const brush = tile.getContext('2d');
  brush.strokeStyle = colour;
  brush.lineWidth = 1.5;
  for (const shift of [-6, 0, 6]) {
    brush.moveTo(shift, 6);
    brush.lineTo(shift + 6, 0);
  }
  brush.stroke();
  return pen.createPattern(tile, 'repeat');
}
