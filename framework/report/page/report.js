// Puts the page together.
'use strict';

(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const runs = data.runs.map((run, index) => ({...run, index}));
  const named = runs.length > 1;
  const title = named ? `${runs.length} runs` : runs[0].name;
  document.title = title + ' – dtrain report';
  const sections = [overview(runs), curves(runs), ...runs.map((run) => workers(run, named)), staleness(runs), traffic(runs),
                    ...runs.map((run) => plan(run, named)), config(runs)].filter(Boolean);
  document.getElementById('main').replaceChildren(...sections);
  const links = sections.map((part) => element('a', {href: '#' + part.id}, part.querySelector('h2').textContent));
  document.getElementById('head').append(element('h1', {}, title, ' ', named ? '' : stateOf(runs[0])),
    element('p', {class: 'soft small'}, named ? runs.map((run) => run.path).join(' · ') : runs[0].path), element('nav', {}, links));
  document.getElementById('foot').append(`Written on ${data.written} by dtrain ${data.version}. Charts: Chart.js ${Chart.version}, MIT licence.`);
  drawCharts();
})();
