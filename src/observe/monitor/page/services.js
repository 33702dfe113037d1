// The section Services: what the metrics say of pipelines, tasks, applications and personal models. They are read while
// the section is open: with thousands of models they are megabytes.

import { fill } from './store.js';

const INTERVAL_MS = 5000;

const TITLES = [
  ['foliot_pipeline_', 'Pipelines: copies of each stage that are wanted, and planned'],
  ['foliot_task_', 'Tasks: variants chosen, and how their calls ended'],
  ['foliot_application_', 'Applications: shares of their models'],
  ['foliot_personal_', 'Personal models'],
  ['foliot_retrain', 'Retraining of personal models'],
];

// [[family, {label: value}, number]] of the text format. Of histograms only count and sum.
export function samplesOf(text) {
  const samples = [];
  for (const line of text.split('\n')) {
    const found = /^([a-z_0-9]+)(?:{(.*)})? (\S+)$/.exec(line);
    if (!found || found[1].endsWith('_bucket')) continue;
    const labels = {};
    for (const [, name, value] of (found[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      labels[name] = value.replace(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped));
    }
    samples.push([found[1], labels, Number(found[3])]);
  }
  return samples;
}

export class Services {
  constructor(details, place, get) {
    this.details = details;
    this.place = place;
    this.get = get;
    this.due = 0;
    details.addEventListener('toggle', () => { this.due = 0; this.read(); });
  }

  async read() {
    if (!this.details.open || Date.now() < this.due) return;
    this.due = Date.now() + INTERVAL_MS;
    const answer = await this.get('metrics');
    if (answer.ok) this.draw(samplesOf(await answer.text()));
  }

  draw(samples) {
    const groups = new Map();
    for (const sample of samples) {
      const title = TITLES.find(([prefix]) => sample[0].startsWith(prefix))?.[1];
      if (title) groups.set(title, [...(groups.get(title) ?? []), sample]);
    }
    if (groups.size === 0) {
      this.place.textContent = 'This server has no pipelines that are tuned, no tasks, applications or personal models.';
      return;
    }
    this.place.replaceChildren(...[...groups].flatMap(([title, rows]) => this.table(title, rows)));
  }

  table(title, samples) {
    const heading = document.createElement('h3');
    heading.textContent = title;
    const table = document.createElement('table');
    const head = table.createTHead().insertRow();
    for (const [text, name] of [['metric', 'text'], ['of', 'text'], ['value', '']]) {
      const cell = document.createElement('th');
      cell.scope = 'col';
      cell.className = name;
      cell.textContent = text;
      head.append(cell);
    }
    table.createTBody();
    fill(table, samples.map(([family, labels, value]) => [
      family, Object.entries(labels).map(([name, text]) => `${name} ${text}`).join(', '), value,
    ]), ['text', 'name']);
    return [heading, table];
  }
}
