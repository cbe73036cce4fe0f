// The page of a study: claims with their verdicts, results, curves, spread over the seeds, performance profiles.
'use strict';

const kResults = {
  'test.accuracy': {title: 'test accuracy', format: percentText, tick: percentTick},
  'test.bleu': {title: 'BLEU'}, 'test.perplexity': {title: 'test perplexity'}, 'test.loss': {title: 'test loss'},
};

const caseTitle = (name) => (name === '' ? [] : element('h3', {}, name));

function claimsOf(study) {
  if (!study.claims.length) return null;
  const kinds = {'holds': 'completed', 'does not hold': 'failed', 'holds in part': 'stopped'};
  const kindOf = (verdict) => kinds[verdict.replace(' so far', '')] || '';
  const columns = [
    {title: 'claim', text: true, always: true, of: (claim) => claim.claim},
    {title: 'verdict', text: true, always: true, of: (claim) =>
      element('span', {}, element('span', {class: 'state ' + kindOf(claim.verdict)}, claim.verdict),
              claim.detail ? ' ' + claim.detail : '', claim.note ? '. ' + claim.note : '')},
    {title: 'here', of: (claim) => claim.ours || '–'},
    {title: 'asked', of: (claim) => claim.bound || '–'},
    {title: 'paper', text: true, of: (claim) => claim.paper || '–'},
  ];
  return section('claims', 'Claims', tableOf(columns, study.claims, {tall: false}));
}

function resultsOf(study) {
  const cell = (i) => (row) => (row.cells[i].text === '-' ? '–' : row.cells[i].text);
  const columns = [
    {title: 'method', text: true, always: true, of: (row) => row.method},
    {title: 'runs', of: (row) => `${row.runs} of ${row.asked}` + (row.failed ? `, ${row.failed} failed` : '')},
    {title: 'tuned', text: true, of: (row) => row.tuned || '–'},
    ...study.measures.map((measure, i) => ({title: measure.text, always: true, of: cell(i)})),
  ];
  const tables = study.cases.map((name) =>
    [caseTitle(name), tableOf(columns, study.rows.filter((row) => row.case === name), {tall: false})]);
  return section('results', 'Results', soft('Median over the seeds, with the least and the largest value.'), tables);
}

function termsOf(study) {
  const equal = 'Links, samples, workers and the values that were tried are the same for all methods';
  const others = study.terms.map((term) => element('li', {}, `${term.key} (${term.values}): ${term.why}`));
  return section('terms', 'Terms', element('p', {}, others.length ? equal + ', but for these:' : equal + '.'),
                 others.length ? element('ul', {}, others) : []);
}

// The mean over the seeds at each evaluation that all of them have; undefined where their samples differ.
function meanOf(curves, x, result) {
  const length = Math.min(...curves.map((curve) => curve.samples.length));
  const points = [];
  for (let i = 0; i < length; ++i) {
    const ys = curves.map((curve) => (curve.values[result] || [])[i]);
    if (!ys.every(isNumber)) continue;
    const mean = (list) => list.reduce((sum, value) => sum + value, 0) / list.length;
    points.push({x: mean(curves.map((curve) => curve[x][i])), y: mean(ys)});
  }
  return points;
}

function curveLines(study, name, x, result) {
  return study.methods.flatMap((method, m) => {
    const curves = study.curves.filter((curve) => curve.case === name && curve.method === method && curve.values[result]);
    if (!curves.length) return [];
    const color = colorOf(m);
    const seeds = curves.length < 2 ? [] : curves.map((curve) => ({
      label: `${method}, seed ${curve.seed}`, group: method, color: faded(color, 0.3), width: 1, order: 1,
      points: curve[x].map((at, i) => ({x: at, y: curve.values[result][i]})).filter((point) => isNumber(point.y)),
    }));
    return [{label: method, group: method, color, width: 2.2, points: meanOf(curves, x, result)}, ...seeds];
  });
}

function curvesOf(study) {
  const charts = study.cases.flatMap((name) => {
    const found = Object.keys(kResults).filter((result) =>
      study.curves.some((curve) => curve.case === name && curve.values[result]));
    return found.map((result) => [caseTitle(name), element('div', {class: 'grid'}, ['seconds', 'samples'].map((x) => {
      const {title, format, tick} = kResults[result];
      const axisTitle = x === 'samples' ? 'samples' : study.simulated ? 'virtual seconds of training' : 'seconds of training';
      return lineChart(`${title} over ${x}`, () => curveLines(study, name, x, result),
                       {x: axisTitle, y: title, ...(format ? {format, tick} : {})});
    }))]);
  });
  if (!charts.length) return null;
  return section('curves', 'Curves', soft('Thick lines are means over the seeds, thin lines single seeds.'), charts);
}

// A point for each seed, so that a difference can be compared with what seeds alone do.
function spreadOf(study) {
  const charts = study.measures.flatMap((measure, i) => study.cases.flatMap((name) => {
    const rows = study.rows.filter((row) => row.case === name && row.values[i].length > 1);
    if (!rows.length) return [];
    const build = () => {
      const datasets = rows.map((row) => ({
        label: row.method, data: row.values[i].map((value) => ({x: row.method, y: value})), showLine: false, pointRadius: 4,
        borderColor: colorOf(study.methods.indexOf(row.method)), backgroundColor: colorOf(study.methods.indexOf(row.method)),
      }));
      const options = optionsOf({
        x: {type: 'category', labels: rows.map((row) => row.method), offset: true, ...axis('')}, y: {...axis(measure.text, numberText)},
        tip: (item) => `${item.dataset.label}: ${numberText(item.parsed.y)}`,
      });
      delete options.scales.x.ticks.callback;
      options.scales.x.title.display = false;
      return {type: 'line', data: {datasets}, options};
    };
    return [element('div', {}, caseTitle(name), chartOf(`${measure.text} of each seed`, build))];
  }));
  if (!charts.length) return null;
  return section('spread', 'Spread of the seeds', element('div', {class: 'grid'}, charts));
}

function profilesOf(study) {
  if (!study.profiles.length) return null;
  const lines = () => study.profiles.map((profile, m) => ({
    label: profile.method, color: colorOf(m), points: profile.tau.map((tau, i) => ({x: tau, y: profile.share[i]})),
  }));
  const columns = [{title: 'method', text: true, always: true, of: (profile) => profile.method},
                   {title: 'score', always: true, of: (profile) => numberText(profile.score)}];
  return section('profiles', 'Performance profiles',
    soft(`The share of workloads (a case with a seed) in which a method's ${study.rank_by} is at most so many times the best one's; ` +
         'the score is the mean share from 1 to 4. What was not reached is infinite.'),
    lineChart('performance profiles', lines, {x: 'times the best', y: 'share of workloads', zero: true}),
    tableOf(columns, study.profiles));
}

(() => {
  const study = JSON.parse(document.getElementById('data').textContent);
  document.title = study.title + ' – dtrain study';
  const sections = [claimsOf(study), resultsOf(study), curvesOf(study), spreadOf(study), profilesOf(study), termsOf(study)].filter(Boolean);
  document.getElementById('main').replaceChildren(...sections);
  const links = sections.map((part) => element('a', {href: '#' + part.id}, part.querySelector('h2').textContent));
  const paper = [study.paper, study.paper_says].filter(Boolean).join(': ');
  document.getElementById('head').append(element('h1', {}, study.title), element('p', {class: 'soft small'}, paper),
    element('p', {class: 'soft small'}, `${study.ended} of ${study.asked} runs have ended` + (study.missing.length ? `, missing are ${study.missing.join('; ')}` : '') +
                            `. Seeds ${study.seeds.join(', ')}.`),
    element('nav', {}, links));
  document.getElementById('foot').append(`Written on ${study.written} by dtrain ${study.version}; results of dtrain ` +
    `${study.revisions.join(', ')}. Charts: Chart.js ${Chart.version}, MIT licence.`);
  drawCharts();
})();
