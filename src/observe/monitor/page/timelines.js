// The section Timelines: a row for each device's LOADs and one for each of its lanes.

import { colours, context, hatch, ms } from './store.js';

const LEFT = 120;         // of the names of rows
const TOP = 22;           // of the axis
const AHEAD = 0.2;        // of the width, right of now
const STEPS = [1, 2, 5];

const bad = (action) => action.status !== undefined && action.status !== 'done';

// A round step, so that there are some eight ticks; in ns.
function tickStep(span) {
  const rough = span / 8;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * (STEPS.find((step) => step * power >= rough) ?? 10);
}

export function describe(action) {
  const parts = [`${action.type} ${action.id} of ${action.model} on device ${action.device}`];
  if (action.type === 'INFER') {
    parts[0] += action.lanes > 1 ? `, lanes ${action.lane} to ${action.lane + action.lanes - 1}` : `, lane ${action.lane}`;
    parts.push(`${action.rows} of ${action.batch} rows`);
  }
  const expected = action.expected_begin === undefined ? undefined : action.expected_end - action.expected_begin;
  if (action.status === undefined) {
    parts.push('sent', expected === undefined ? 'no outcome yet' : `expected to take ${ms(expected, 3)} ms`);
  } else if (action.status === 'done') {
    parts.push(`took ${ms(action.end - action.begin, 3)} ms`);
    if (expected !== undefined) {
      const late = action.begin - action.expected_begin;
      parts.push(`expected ${ms(expected, 3)} ms`, `began ${ms(Math.abs(late), 3)} ms ${late < 0 ? 'earlier' : 'later'} than expected`);
    }
  } else {
    parts.push(`ended as: ${action.status}`);
  }
  return `${parts.join('; ')}.`;
}

export class Timelines {
  constructor(canvas, onSelect) {
    this.canvas = canvas;
    this.onSelect = onSelect;
    this.span = 1e9;
    this.shift = 0;       // how far the view is moved back; 0: it ends after now
    this.boxes = [];      // what was drawn: {action, x, y, width, height}
    this.chosen = null;   // the number of an action
    canvas.addEventListener('mousemove', (event) => this.point(event));
    canvas.addEventListener('click', (event) => this.point(event));
    canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8);
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => this.key(event));
  }

  zoom(factor) {
    this.span = Math.min(120e9, Math.max(1e6, this.span * factor));
    this.redraw();
  }

  move(share) {
    this.shift = Math.max(0, this.shift + share * this.span);
    this.redraw();
  }

  key(event) {
    const keys = {
      ArrowLeft: () => this.move(0.2), ArrowRight: () => this.move(-0.2), '+': () => this.zoom(0.5), '=': () => this.zoom(0.5),
      '-': () => this.zoom(2), n: () => this.step(1), b: () => this.step(-1),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  }

  step(by) {
    const order = this.boxes.toSorted((a, b) => a.x - b.x || a.y - b.y);
    if (order.length === 0) return;
    const at = order.findIndex((box) => box.action.id === this.chosen);
    const next = at < 0 ? (by > 0 ? 0 : order.length - 1) : Math.min(order.length - 1, Math.max(0, at + by));
    this.select(order[next].action);
  }

  point(event) {
    const [x, y] = [event.offsetX, event.offsetY];
    const box = this.boxes.findLast((one) => x >= one.x - 1 && x <= one.x + one.width + 1 && y >= one.y && y <= one.y + one.height);
    if (box && box.action.id !== this.chosen) this.select(box.action);
  }

  select(action) {
    this.chosen = action.id;
    this.onSelect(describe(action));
    this.redraw();
  }

  draw(store) {
    this.store = store;
    this.redraw();
  }

  // Of each device: LOAD, then its lanes.
  rows() {
    const rows = new Map();
    let y = TOP;
    const high = this.store.state.devices.length > 12 ? 14 : 28;
    for (const device of this.store.state.devices) {
      const names = ['LOAD', ...Array.from({ length: device.lanes }, (_, lane) => (device.lanes > 1 ? `lane ${lane}` : 'EXEC'))];
      rows.set(device.id, { y, high, names });
      y += names.length * high + 8;
    }
    return [rows, y, high];
  }

  redraw() {
    if (!this.store?.state) return;
    const [rows, height, high] = this.rows();
    const colour = colours();
    const [pen, width] = context(this.canvas, height);
    const end = this.store.state.now + AHEAD * this.span - this.shift;
    const begin = end - this.span;
    const place = { x: (ns) => LEFT + (ns - begin) / this.span * (width - LEFT), begin, end, high, width };
    this.boxes = [];
    this.axis(pen, colour, place, height);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, width - LEFT, height);
    pen.clip();
    const lines = { failed: hatch(pen, colour.failed), exec: hatch(pen, colour.exec), load: hatch(pen, colour.load) };
    const waiting = [];
    for (const action of this.store.actions.values()) {
      if (action.status !== undefined) this.bar(pen, colour, lines, place, rows.get(action.device), action, action.begin, action.end);
      else if (action.expected_begin !== undefined) waiting.push(action);
    }
    for (const [action, from, until] of this.plan(waiting)) this.bar(pen, colour, lines, place, rows.get(action.device), action, from, until);
    this.now(pen, colour, place, height);
    pen.restore();
    this.names(pen, colour, rows, width);
  }

  // [action, from, until] of what has no outcome yet: what should be over lasts until now, and what is behind it on its
  // lanes begins that much later.
  plan(waiting) {
    const free = new Map();
    return waiting.toSorted((a, b) => a.expected_begin - b.expected_begin || a.id - b.id).map((action) => {
      const lanes = action.type === 'INFER' ? Array.from({ length: action.lanes }, (_, i) => action.lane + i) : ['LOAD'];
      const keys = lanes.map((lane) => `${action.device} ${lane}`);
      const from = Math.max(action.expected_begin, ...keys.map((key) => free.get(key) ?? 0));
      const until = Math.max(from + action.expected_end - action.expected_begin, Math.min(this.store.state.now, action.expected_begin + 10e9));
      for (const key of keys) free.set(key, until);
      return [action, from, until];
    });
  }

  names(pen, colour, rows, width) {
    for (const [id, row] of rows) {
      row.names.forEach((name, index) => {
        const y = row.y + index * row.high;
        pen.fillStyle = index === 0 ? colour.ink : colour.soft;
        if (row.high > 16 || index === 0) pen.fillText(index === 0 ? `device ${id}` : '', 8, y + row.high / 2 + 4);
        pen.fillStyle = colour.soft;
        if (row.high > 16) pen.fillText(name, 70, y + row.high / 2 + 4);
      });
      pen.fillStyle = colour.rule;
      pen.fillRect(0, row.y + row.names.length * row.high + 3, width, 1);
    }
  }

  axis(pen, colour, place, height) {
    const step = tickStep(this.span);
    const { now } = this.store.state;
    pen.textAlign = 'center';
    for (let tick = Math.ceil((place.begin - now) / step) * step; now + tick <= place.end; tick += step) {
      const x = place.x(now + tick);
      pen.fillStyle = colour.rule;
      pen.fillRect(x, TOP - 4, 1, height - TOP + 4);
      pen.fillStyle = colour.soft;
      const label = step >= 1e9 ? `${Math.round(tick / 1e9)} s` : `${Number((tick / 1e6).toPrecision(6))} ms`;
      if (Math.abs(tick) > step / 2 && x > LEFT + 24 && x < place.width - 24) pen.fillText(label, x, 14);
    }
    pen.textAlign = 'left';
  }

  now(pen, colour, place, height) {
    const x = place.x(this.store.state.now);
    if (x < LEFT || x > place.width) return;
    pen.fillStyle = colour.ink;
    pen.fillRect(x - 0.75, TOP - 6, 1.5, height - TOP);
    pen.font = '600 12px system-ui, "DejaVu Sans", sans-serif';
    pen.textAlign = 'center';
    pen.fillText('now', x, 14);
    pen.textAlign = 'left';
    pen.font = '12px system-ui, "DejaVu Sans", sans-serif';
  }

  bar(pen, colour, lines, place, row, action, from, until) {
    if (!row || action.type === 'UNLOAD') return;
    const over = action.status !== undefined;
    if (until < place.begin || Math.min(from, action.expected_begin ?? from) > place.end) return;
    const exec = action.type === 'INFER';
    const y = row.y + (exec ? 1 + action.lane : 0) * row.high + 2;
    const high = (exec ? action.lanes : 1) * row.high - 4;
    const box = { action, x: place.x(from), y, width: Math.max(1.5, place.x(until) - place.x(from) - 1), height: high };
    this.boxes.push(box);
    const line = high > 14 ? 4 : 2;
    const main = exec ? colour.exec : colour.load;
    if (!over) {
      pen.globalAlpha = 0.4;
      pen.fillStyle = exec ? lines.exec : lines.load;
      pen.fillRect(box.x, y, box.width, high - line - 1);
      pen.globalAlpha = 1;
      pen.strokeStyle = main;
      pen.setLineDash([4, 3]);
      pen.strokeRect(box.x + 0.5, y + 0.5, Math.max(1, box.width - 1), high - line - 2);
      pen.setLineDash([]);
    } else {
      pen.fillStyle = bad(action) ? lines.failed : main;
      pen.fillRect(box.x, y, box.width, high - line - 1);
    }
    if (action.expected_begin !== undefined && !bad(action)) {
      pen.fillStyle = colour.soft;
      pen.fillRect(place.x(action.expected_begin), y + high - line + 1, Math.max(1, place.x(action.expected_end) - place.x(action.expected_begin)), line - 1);
    }
    this.label(pen, colour, box, over && !bad(action), high - line - 1);
    if (action.id !== this.chosen) return;
    pen.strokeStyle = colour.ink;
    pen.lineWidth = 2;
    pen.strokeRect(box.x - 1, y - 1, box.width + 2, high + 2);
    pen.lineWidth = 1;
  }

  label(pen, colour, box, filled, high) {
    if (box.width < 34 || high < 11) return;
    const { action } = box;
    const text = action.type === 'INFER' ? `${action.model} ×${action.rows}` : action.model;
    pen.save();
    pen.beginPath();
    pen.rect(box.x, box.y, box.width - 3, box.height);
    pen.clip();
    pen.fillStyle = filled ? colour.card : colour.ink;
    pen.fillText(text, Math.max(box.x, LEFT) + 4, box.y + high / 2 + 4);
    pen.restore();
  }
}
