// The parts of the page: each takes the runs and gives elements, or null where they tell nothing of it.
'use strict';

const columnOf = (series, name) => (series && series[name]) || [];

function pointsOf(series, x, y) {
  const xs = columnOf(series, x), ys = columnOf(series, y);
  return ys.map((value, i) => ({x: xs[i], y: value})).filter((point) => isNumber(point.x) && isNumber(point.y));
}

// --- of a whole run

// Of a run that was resumed the summary counts most things from the resume; ranks.jsonl has the whole run.
const summaryOf = (run) => run.summary || {};
const wasResumed = (run) => isNumber(summaryOf(run).resumed_step) && Boolean(run.ranks);
const sumOfRanks = (run, key) => run.ranks.reduce((sum, rank) => sum + (rank[key] || 0), 0);
const communicationOf = (run) => wasResumed(run) && summaryOf(run).communication
  ? {...summaryOf(run).communication, bytes_sent: sumOfRanks(run, 'bytes_sent'), bytes_received: sumOfRanks(run, 'bytes_received'),
     messages: sumOfRanks(run, 'messages')}
  : summaryOf(run).communication || {};

function stalenessOf(run) {
  const told = summaryOf(run).staleness;
  return (told && run.state !== 'running' && !wasResumed(run) ? told.histogram : run.staleness) || [];
}

function meanStalenessOf(run) {
  if (!wasResumed(run)) return (summaryOf(run).staleness || {}).mean;
  const list = stalenessOf(run), gradients = list.reduce((sum, count) => sum + count, 0);
  return gradients ? list.reduce((sum, count, s) => sum + s * count, 0) / gradients : undefined;
}

// --- overview

function overview(runs) {
  const lastOf = (run, key) => { const list = columnOf(run.steps, key); return list.length ? list[list.length - 1] : undefined; };
  const testOf = (run) => summaryOf(run).test || (run.evaluations || []).filter((e) => e.split === 'test').pop() || {};
  const columns = [
    {title: 'run', text: true, always: true, of: (run) => run.name},
    {title: 'state', text: true, always: true, of: stateOf},
    {title: 'strategy', text: true, of: (run) => summaryOf(run).strategy || configValue(run, 'strategy.name')},
    {title: 'workers', of: (run) => numberText(summaryOf(run).workers || Number(configValue(run, 'cluster.workers')) || undefined)},
    {title: 'epochs', of: (run) => numberText(summaryOf(run).epochs)},
    {title: 'steps', of: (run) => numberText(summaryOf(run).steps ?? lastOf(run, 'step'))},
    {title: 'train loss', of: (run) => numberText((summaryOf(run).train || {}).loss ?? lastOf(run, 'loss'))},
    {title: 'mean train loss', of: (run) => numberText((summaryOf(run).train || {}).mean_loss)},
    {title: 'train accuracy', of: (run) => percentText((summaryOf(run).train || {}).accuracy)},
    {title: 'test loss', of: (run) => numberText(testOf(run).loss)},
    {title: 'test accuracy', of: (run) => percentText(testOf(run).accuracy)},
    {title: 'test perplexity', of: (run) => numberText(testOf(run).perplexity)},
    {title: 'BLEU', of: (run) => numberText(testOf(run).bleu)},
    {title: 'training time', of: (run) => secondsText(lastOf(run, 'training_seconds') ?? summaryOf(run).seconds)},
    {title: 'samples/s', of: (run) => numberText(summaryOf(run).samples_per_second ?? lastOf(run, 'samples_per_second'))},
    {title: 'median step', of: (run) => secondsText((summaryOf(run).step_seconds || {}).p50)},
    {title: 'bytes sent', of: (run) => bytesText(communicationOf(run).bytes_sent)},
    {title: 'mean staleness', of: (run) => numberText(meanStalenessOf(run))},
  ];
  const resumeNote = (run) => wasResumed(run)
    ? [`resumed after step ${summaryOf(run).resumed_step}: samples/s, the median step, and of the traffic what ranks.jsonl does not ` +
       'have (inside nodes, a gradient, density, exposed, compressing) count from there; all else is of the whole run.']
    : [];
  const notes = runs.flatMap((run) => [...run.notes, ...resumeNote(run)].map((note) => soft(runs.length > 1 ? run.name + ': ' + note : note)));
  if (runs.length > 1) return section('overview', 'Overview', tableOf(columns, runs), notes);
  const facts = columns.slice(2).map((column) => [column.title, column.of(runs[0])]);
  return section('overview', 'Overview', cardsOf(facts), notes);
}

function configValue(run, key) {
  const found = (run.config || []).find(([name]) => name === key);
  return found ? found[1] : '–';
}

// --- curves

const kAxes = {
  step: {title: 'step', button: 'by step', key: 'step'},
  seconds: {title: 'seconds of training', button: 'by time', key: 'training_seconds'},
  samples: {title: 'samples', button: 'by samples', key: 'samples'},
};

function evaluationLines(runs, metric, axisName) {
  const lines = [];
  runs.forEach((run, r) => {
    const splits = [...new Set((run.evaluations || []).map((evaluation) => evaluation.split))];
    for (const split of splits) {
      const points = run.evaluations.filter((e) => e.split === split && isNumber(e[metric]) && isNumber(e[kAxes[axisName].key]))
                         .map((e) => ({x: e[kAxes[axisName].key], y: e[metric]}));
      if (!points.length) continue;
      const index = runs.length > 1 ? r : lines.length + 1;
      lines.push({label: (runs.length > 1 ? run.name + ', ' : '') + split, color: colorOf(index), points,
                  dashed: true, points_shown: points.length <= 60});
    }
  });
  return lines;
}

function lossLines(runs, axisName) {
  const train = runs.map((run, r) => ({label: runs.length > 1 ? run.name + ', train' : 'train', color: colorOf(r),
                                       points: pointsOf(run.steps, kAxes[axisName].key, 'loss')}));
  return [...train.filter((line) => line.points.length), ...evaluationLines(runs, 'loss', axisName)];
}

const kMetrics = [
  {key: 'accuracy', title: 'Accuracy', format: percentText}, {key: 'top5', title: 'Top-5 accuracy', format: percentText},
  {key: 'perplexity', title: 'Perplexity', format: numberText}, {key: 'bleu', title: 'BLEU', format: numberText},
];

function curves(runs) {
  const state = {axis: 'step'};
  const charts = element('div', {class: 'grid'});
  const add = (title, lines, format, zero = false) => {
    if (!lines(state.axis).length) return;
    charts.append(element('div', {}, element('h3', {}, title), curveChart(title, state, lines, format, zero)));
  };
  add('Loss', (axisName) => lossLines(runs, axisName), numberText, true);
  for (const {key, title, format} of kMetrics) add(title, (axisName) => evaluationLines(runs, key, axisName), format);
  const stepLines = (key) => (axisName) => runs.map((run, r) => ({
    label: run.name, color: colorOf(r), points: pointsOf(run.steps, kAxes[axisName].key, key)})).filter((line) => line.points.length);
  add('Learning rate', stepLines('lr'), numberText, true);
  add('Samples a second', stepLines('samples_per_second'), numberText, true);
  if (!charts.childElementCount) return null;
  return section('curves', 'Curves', axisChoice(state, runs), charts, runs.map((run) => curveTables(run, runs.length > 1)));
}

function curveChart(title, state, lines, format, zero) {
  return chartOf(title, () => {
    return lineConfig(lines(state.axis), {x: kAxes[state.axis].title, y: '', format, zero, tick: format === percentText ? percentTick : format});
  });
}

function axisChoice(state, runs) {
  const possible = Object.keys(kAxes).filter((name) => runs.some((run) =>
    columnOf(run.steps, kAxes[name].key).length || (run.evaluations || []).some((e) => isNumber(e[kAxes[name].key]))));
  const buttons = possible.map((name) => element('button', {type: 'button', 'aria-pressed': String(name === state.axis), onclick: (event) => {
    state.axis = name;
    buttons.forEach((button) => button.setAttribute('aria-pressed', String(button === event.target)));
    redraw();
  }}, kAxes[name].button));
  return element('div', {class: 'choice', role: 'group', 'aria-label': 'horizontal axis'}, buttons);
}

function curveTables(run, named) {
  const steps = run.steps || {};
  const joined = steps.joined > 1
    ? `${numberText(steps.rows)} logged steps: each point and row is the mean of ${steps.joined} neighbours.`
    : `${numberText(steps.rows)} logged steps, each of them shown.`;
  const rows = columnOf(steps, 'step').map((step, i) => i);
  const column = (title, key, format = numberText) => ({title, of: (i) => format(columnOf(steps, key)[i])});
  const stepTable = tableOf([column('step', 'step'), column('samples', 'samples'), column('training time', 'training_seconds', secondsText),
    column('loss', 'loss'), column('learning rate', 'lr'), column('samples/s', 'samples_per_second'),
    column('exposed communication', 'exposed_seconds', secondsText)], rows);
  const evaluated = (title, key, format = numberText) => ({title, of: (e) => format(e[key])});
  const evaluationTable = tableOf([{title: 'split', text: true, of: (e) => e.split}, evaluated('step', 'step'),
    evaluated('training time', 'training_seconds', secondsText), evaluated('loss', 'loss'),
    ...kMetrics.map(({key, title, format}) => evaluated(title.toLowerCase(), key, format)),
    evaluated('evaluated in', 'evaluate_seconds', secondsText)], run.evaluations || []);
  return element('div', {}, named ? element('h3', {}, run.name) : null,
    run.evaluations ? fold('Table of evaluations', evaluationTable) : null,
    run.steps ? [soft(joined), fold('Table of steps', stepTable)] : null);
}

// --- workers

function workersOf(run) {
  if (run.ranks) return run.ranks.filter((rank) => rank.own_steps > 0);
  const details = (run.summary || {}).workers_detail;
  return (Array.isArray(details) ? details : []).map((worker) => ({...worker, own_steps: worker.own_steps ?? worker.steps, role: 'worker ' + worker.rank}));
}

const computeMs = (worker) => (1e3 * worker.compute_seconds) / worker.own_steps;
const waitMs = (worker) => (1e3 * worker.wait_seconds) / worker.own_steps;
const msText = (value) => secondsText(1e-3 * value);

// The program decides (straggler.h): {worker, factor, median}, or null.
function stragglerOf(run, workers) {
  const found = run.straggler || {};
  const worker = isNumber(found.rank) ? workers.find((one) => one.rank === found.rank) : null;
  return worker ? {worker, factor: found.factor, median: found.median_seconds} : null;
}

function workerSentence(run, straggler) {
  if (straggler) {
    return element('p', {}, element('b', {}, straggler.worker.role), ` is the straggler: its step computes ${msText(computeMs(straggler.worker))}, ` +
      `${straggler.factor.toFixed(2)} times as long as the median of all workers (${secondsText(straggler.median)}).`);
  }
  return (run.straggler || {}).none ? element('p', {}, run.straggler.none) : null;
}

// Several lines are alike but for the straggler's, which is drawn last and stronger.
function workerLines(workers, straggler, key) {
  return workers.filter((worker) => worker.times).map((worker) => {
    const marked = straggler && worker === straggler.worker;
    const plain = straggler ? faded(colorOf(0), 0.45) : colorOf(worker.rank);
    return {label: worker.role, color: marked ? colorOf(1) : plain, width: marked ? 2.6 : 1.4, order: marked ? 0 : 1,
            points: pointsOf(worker.times, 'seconds', key)};
  });
}

function workers(run, named) {
  const all = workersOf(run);
  if (!all.length) return null;
  const straggler = stragglerOf(run, all);
  const names = all.map((worker) => worker.role.replace('worker ', ''));
  const charts = element('div', {class: 'grid'});
  const timed = all.filter((worker) => worker.times);
  const add = (title, chart) => charts.append(element('div', {}, element('h3', {}, title), chart));
  const timeAxis = {x: 'seconds of training', y: '', format: msText, zero: true};
  if (timed.length) {
    add('Time that a step computes', lineChart('Time that a step computes, by worker', () => workerLines(all, straggler, 'compute_ms'), timeAxis));
    add('Time that a step waits', lineChart('Time that a step waits, by worker', () => workerLines(all, straggler, 'wait_ms'), timeAxis));
  }
  add('A step of each worker, on average', barChart('Mean step of each worker', names, () => [
    {label: 'compute', color: colorOf(0), values: all.map(computeMs)}, {label: 'wait', color: colorOf(1), values: all.map(waitMs)},
  ], {x: 'worker', y: '', format: msText, stacked: true}));
  const left = all.length - timed.length;
  const notes = [
    timed.length && left ? soft(`The curves are those of ${timed.length} workers, the slowest and the fastest; ${left} are in the table alone.`) : null,
    timed.length ? soft('A point is the mean over some steps, and grows from boundary to boundary: at evaluations and checkpoints the ranks report their times.') :
             soft('How the times went on is not recorded in this folder (ranks.jsonl); these are sums of the whole run.'),
  ];
  return section('workers-' + run.index, named ? 'Workers: ' + run.name : 'Workers', workerSentence(run, straggler), charts, notes, workerTable(all, straggler));
}

function workerTable(all, straggler) {
  return tableOf([
    {title: 'worker', always: true, of: (w) => w.role}, {title: 'node', text: true, of: (w) => w.node || '–'},
    {title: 'own steps', of: (w) => numberText(w.own_steps)}, {title: 'compute a step', of: (w) => msText(computeMs(w))},
    {title: 'wait a step', of: (w) => msText(waitMs(w))},
    {title: 'share waited', of: (w) => percentText(w.wait_seconds / Math.max(w.wait_seconds + w.compute_seconds, 1e-12))},
    {title: 'longest step', of: (w) => secondsText(w.longest_seconds)},
    {title: 'compute in all', of: (w) => secondsText(w.compute_seconds)}, {title: 'wait in all', of: (w) => secondsText(w.wait_seconds)},
    {title: 'mean staleness', of: (w) => numberText(w.staleness_mean)},
  ], all, {marked: (w) => straggler && w === straggler.worker});
}

// --- staleness

function staleness(runs) {
  const of = stalenessOf;
  const shown = runs.filter((run) => of(run).length);
  if (!shown.length) return null;
  const most = Math.max(...shown.map((run) => of(run).length));
  const values = Array.from({length: most}, (_, s) => s);
  const total = (run) => of(run).reduce((sum, count) => sum + count, 0);
  const chart = barChart('Staleness of gradients', values.map(String), () => shown.map((run) => ({
    label: run.name, color: colorOf(run.index), values: values.map((s) => (of(run)[s] || 0) / total(run))})),
    {x: 'staleness', y: 'share of gradients', format: percentText, tick: percentTick});
  const table = tableOf([{title: 'staleness', of: (s) => String(s)},
    ...shown.map((run) => ({title: shown.length > 1 ? run.name : 'gradients', of: (s) => numberText(of(run)[s] || 0)})),
    ...shown.map((run) => ({title: shown.length > 1 ? run.name + ', share' : 'share', of: (s) => percentText((of(run)[s] || 0) / total(run))}))], values);
  return section('staleness', 'Staleness', soft('How many updates the weights had between being read and getting the gradient.'), chart, table);
}

// --- traffic

function traffic(runs) {
  const shown = runs.filter((run) => run.ranks && run.ranks.some((rank) => rank.bytes_sent > 0));
  const summed = runs.filter((run) => (run.summary || {}).communication);
  if (!shown.length && !summed.length) return null;
  const charts = element('div', {class: 'grid'});
  if (shown.length) {
    charts.append(element('div', {}, element('h3', {}, 'Bytes sent by all ranks so far'), lineChart('Bytes sent so far', () => shown.map((run) => ({
      label: run.name, color: colorOf(run.index), points: pointsOf(run.traffic, 'seconds', 'sent'), points_shown: columnOf(run.traffic, 'sent').length < 40})),
      {x: 'seconds of training', y: '', format: bytesText})));
  }
  for (const run of shown) {
    charts.append(element('div', {}, element('h3', {}, 'By rank' + (runs.length > 1 ? ': ' + run.name : '')), barChart('Bytes by rank',
      run.ranks.map((rank) => String(rank.rank)), () => [
        {label: 'sent', color: colorOf(0), values: run.ranks.map((rank) => rank.bytes_sent)},
        {label: 'received', color: colorOf(1), values: run.ranks.map((rank) => rank.bytes_received)},
      ], {x: 'rank', y: '', format: bytesText})));
  }
  const of = (key, format) => (run) => format(communicationOf(run)[key]);
  const table = summed.length ? tableOf([
    {title: 'run', text: true, always: true, of: (run) => run.name}, {title: 'sent', of: of('bytes_sent', bytesText)},
    {title: 'received', of: of('bytes_received', bytesText)}, {title: 'inside nodes', of: of('bytes_inside_nodes', bytesText)},
    {title: 'messages', of: of('messages', numberText)}, {title: 'a gradient', of: of('bytes_per_gradient', bytesText)},
    {title: 'density', of: of('density', percentText)}, {title: 'exposed', of: of('exposed_seconds', secondsText)},
    {title: 'compressing', of: of('compress_seconds', secondsText)}], summed) : null;
  const rankTables = shown.map((run) => fold('Table of ranks' + (runs.length > 1 ? ': ' + run.name : ''), tableOf([
    {title: 'rank', of: (r) => String(r.rank)}, {title: 'role', text: true, of: (r) => r.role || '–'}, {title: 'node', text: true, of: (r) => r.node || '–'},
    {title: 'sent', of: (r) => bytesText(r.bytes_sent)}, {title: 'received', of: (r) => bytesText(r.bytes_received)},
    {title: 'messages', of: (r) => numberText(r.messages)}], run.ranks)));
  return section('traffic', 'Traffic', charts, table, rankTables);
}

// --- buckets and the timeline

const kKinds = [
  {name: 'compute', label: 'compute', color: () => colorOf(0)}, {name: 'wait', label: 'wait', color: () => colorOf(4)},
  {name: 'exposed', label: 'exposed: the step waits for the exchange', color: () => colorOf(1)},
  {name: 'sum', label: 'sum of a bucket', color: () => colorOf(2)}, {name: 'select', label: 'select', color: () => colorOf(3)},
  {name: 'arithmetic', label: 'arithmetic', color: () => colorOf(5)}, {name: 'evaluate', label: 'evaluate', color: () => colorOf(8)},
  {name: 'checkpoint', label: 'checkpoint', color: () => colorOf(6)},
];

function timelineChart(timeline) {
  const rows = [];
  const spans = [];
  for (const rank of timeline.ranks) {
    for (const lane of rank.lanes) {
      const row = `${rank.rank} ${lane.name}`;
      rows.push(row);
      for (const [name, from, to, bucket] of lane.spans) {
        spans.push({name, x: [from, to], y: row, note: bucket === undefined ? name : `sum of bucket ${bucket}`});
      }
    }
  }
  return spanChart('What each rank did when', rows, () => kKinds.map((kind) => ({
    label: kind.label, color: kind.color(), edged: kind.name === 'sum', spans: spans.filter((span) => span.name === kind.name),
  })).filter((kind) => kind.spans.length), {x: 'milliseconds', end: timeline.milliseconds});
}

// Seconds that the sum of each bucket took in the excerpt: of the rank that waited least, for the others waited for it too.
function bucketTimes(timeline) {
  const times = {};
  for (const rank of (timeline || {ranks: []}).ranks) {
    const own = {};
    for (const lane of rank.lanes) {
      for (const [name, from, to, bucket] of lane.spans) if (name === 'sum') (own[bucket] = own[bucket] || []).push(1e-3 * (to - from));
    }
    for (const [bucket, list] of Object.entries(own)) {
      const mean = list.reduce((sum, value) => sum + value, 0) / list.length;
      times[bucket] = Math.min(mean, times[bucket] ?? Infinity);
    }
  }
  return times;
}

function bucketTable(run) {
  const buckets = (run.plan.buckets || []).map((bucket, i) => ({...bucket, number: i}));
  const times = bucketTimes(run.timeline);
  const total = buckets.reduce((sum, b) => sum + b.end - b.begin, 0);
  return tableOf([{title: 'bucket', of: (b) => String(b.number)}, {title: 'from', of: (b) => numberText(b.begin)}, {title: 'to', of: (b) => numberText(b.end)},
    {title: 'elements', of: (b) => numberText(b.end - b.begin)}, {title: 'bytes', of: (b) => bytesText(4 * (b.end - b.begin))},
    {title: 'share', of: (b) => percentText((b.end - b.begin) / total)}, {title: 'sum takes', of: (b) => secondsText(times[b.number])}], buckets);
}

function plan(run, named) {
  const timeline = run.timeline && run.timeline.ranks.length ? run.timeline : null;
  const summed = !(run.summary && run.summary.servers);  // where servers add up, nobody sums buckets
  const buckets = summed && run.plan && (run.plan.buckets || []).length;
  if (!timeline && !buckets) return null;
  const parts = [];
  if (run.plan) {
    parts.push(cardsOf([['buckets', buckets ? numberText(buckets) : '–'], ['collective', (summed && run.plan.collective) || '–'], ['threads a rank', numberText(run.plan.threads)],
      ['instruction set', run.plan.isa || '–'], ['predicted step', run.plan.predicted_seconds ? secondsText(run.plan.predicted_seconds) : '–'],
      ['measured median', secondsText(((run.summary || {}).step_seconds || {}).p50)]]));
  }
  if (timeline) {
    const [first, last] = timeline.steps;
    parts.push(element('h3', {}, `Steps ${first + 1} to ${last + 1} of the timeline`), timelineChart(timeline));
    if (timeline.ranks_left_out) parts.push(soft(`${timeline.ranks_left_out} more ranks are in timeline.json.`));
    parts.push(soft('The whole of it, with every message, is in timeline.json: open it in Perfetto or chrome://tracing.'));
  } else {
    parts.push(soft('`timeline: true` in the config shows here when each bucket was summed.'));
  }
  if (buckets) parts.push(bucketTable(run));
  return section('plan-' + run.index, named ? 'Plan and timeline: ' + run.name : 'Plan and timeline', parts);
}

// --- config

function config(runs) {
  const shown = runs.filter((run) => run.config);
  if (!shown.length) return null;
  const keys = [...new Set(shown.flatMap((run) => run.config.map(([key]) => key)))];
  const values = shown.map((run) => new Map(run.config));
  const rowOf = (key) => ({key, values: values.map((map) => (map.has(key) ? map.get(key) : '–'))});
  const rows = keys.map(rowOf);
  const table = (list) => tableOf([{title: 'key', text: true, always: true, of: (row) => row.key},
    ...shown.map((run, i) => ({title: run.name, text: true, always: true, of: (row) => row.values[i]}))], list);
  if (shown.length === 1) return section('config', 'Config', fold(`All ${keys.length} keys`, table(rows)));
  const different = rows.filter((row) => row.key !== 'output' && row.values.some((value) => value !== row.values[0]));
  return section('config', 'Config', different.length
    ? [element('p', {}, `The runs differ in ${different.length} of ${keys.length} keys.`), table(different)]
    : element('p', {}, 'The runs have the same config.'), fold(`All ${keys.length} keys`, table(rows)));
}
