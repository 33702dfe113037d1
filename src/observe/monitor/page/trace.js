// The window that the page has, in the Chrome trace event format: a process for each device, a thread for LOADs and one
// for each lane; a process of the refused requests.

const us = (ns) => ns / 1000;

export function traceOf(store) {
  const events = [];
  const name = (pid, what, text, tid) => events.push({ ph: 'M', pid, tid, name: what, args: { name: text } });
  const seen = new Set();
  for (const action of store.actions.values()) {
    if (action.begin === undefined || action.type === 'UNLOAD') continue;
    const pid = action.device + 1;
    const tid = action.type === 'LOAD' ? 0 : (action.lane ?? 0) + 1;
    if (!seen.has(pid)) name(pid, 'process_name', `device ${action.device}`);
    if (!seen.has(`${pid}.${tid}`)) name(pid, 'thread_name', tid === 0 ? 'LOAD' : `EXEC, lane ${tid - 1}`, tid);
    seen.add(pid).add(`${pid}.${tid}`);
    events.push({
      ph: 'X', pid, tid, name: action.model, cat: action.type, ts: us(action.begin), dur: us(action.end - action.begin),
      args: {
        action: action.id, status: action.status, batch: action.batch, rows: action.rows,
        sent_us: action.sent === undefined ? undefined : us(action.sent),
        expected_begin_us: action.expected_begin === undefined ? undefined : us(action.expected_begin),
        expected_end_us: action.expected_end === undefined ? undefined : us(action.expected_end),
      },
    });
  }
  name(0, 'process_name', 'requests that were refused');
  for (const request of store.requests) {
    if (request.outcome === 'served') continue;
    events.push({
      ph: 'i', s: 'p', pid: 0, tid: 0, name: `${request.outcome}: ${request.model}`, cat: 'refusal', ts: us(request.finished),
      args: { request: request.id, arrival_us: us(request.arrival), deadline_us: request.deadline === undefined ? undefined : us(request.deadline) },
    });
  }
  return { displayTimeUnit: 'ms', traceEvents: events };
}
