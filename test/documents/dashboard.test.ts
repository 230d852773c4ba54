// dashboards/inference-proxy.json: its queries name metrics of docs/operations/metrics.md, which test/contract compares with the services.
import { openRegistry } from '@inference-proxy/platform';
import { expect, test } from '@jest/globals';
import { page, tableRows, ticked } from './markdown.ts';

interface Target {
  readonly expr: string;
  readonly legendFormat: string;
  readonly datasource: { readonly uid: string };
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly targets?: readonly Target[];
}

interface Variable {
  readonly name: string;
  readonly type: string;
  readonly query: unknown;
  readonly definition?: string;
}

interface Dashboard {
  readonly title: string;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
}

interface Metric {
  readonly type: string;
  readonly labels: readonly string[];
}

const dashboard = JSON.parse(page('dashboards/inference-proxy.json')) as Dashboard;
const targets = dashboard.panels.flatMap(({ title, targets: of = [] }) => of.map((target) => ({ title, ...target })));

const metricsOf = (service: string): [string, Metric][] =>
  tableRows(page('docs/operations/metrics.md'), new RegExp(`^Metrics of the ${service}$`)).map(
    ([name = '', type = '', labels = '']) => [
      ticked(name)[0] ?? '',
      { type, labels: labels === '' ? [] : labels.split(', ') },
    ],
  );
const own = new Map(['gateway', 'worker', 'dispatcher', 'proxy'].flatMap(metricsOf));
/** Metrics of every Node process. */
const common = new Map(
  openRegistry()
    .getMetricsAsArray()
    .map(({ name, type }): [string, Metric] => [name, { type: String(type), labels: [] }]),
);

/** Labels that Prometheus adds when it scrapes. */
const SCRAPED = ['job', 'instance'];
const FUNCTIONS = new Set(['sum', 'max', 'rate', 'histogram_quantile', 'by']);

/** Returns the words, strings, numbers, ranges and brackets of an expression. @throws Error for other text */
function tokens(expr: string): string[] {
  const found: string[] = [];
  let rest = expr;
  while (rest !== '') {
    const match =
      /^(?:\s+|([A-Za-z_][A-Za-z0-9_]*)|("(?:[^"\\]|\\.)*")|([0-9.]+)|(\[\$__rate_interval\])|(=~|[{}(),=]))/.exec(
        rest,
      );
    if (!match) throw new Error(`the expression ${expr} is not PromQL at: ${rest}`);
    found.push(...match.slice(1).filter((token) => token !== undefined));
    rest = rest.slice(match[0].length);
  }
  return found;
}

function metricOf(name: string): Metric & { readonly histogram: boolean } {
  const base = name.replace(/_(bucket|sum|count)$/, '');
  const found = own.get(name) ?? common.get(name);
  if (found) return { ...found, histogram: false };
  const histogram = own.get(base);
  if (histogram?.type !== 'histogram')
    throw new Error(`no service has the metric ${name}; correct the dashboard or docs/operations/metrics.md`);
  return { ...histogram, labels: [...histogram.labels, 'le'], histogram: true };
}

test('the dashboard can be imported and provisioned: all panels use the data source variable and have unique ids and places', () => {
  expect(dashboard.title).toBe('inference-proxy');
  // Grafana asks for `__inputs` only at a manual import. A provisioned dashboard would not find its data source.
  expect(dashboard).not.toHaveProperty('__inputs');
  expect(dashboard.templating.list[0]).toMatchObject({
    name: 'DS_PROMETHEUS',
    type: 'datasource',
    query: 'prometheus',
  });
  expect(targets.filter(({ datasource }) => !/^\$\{DS_PROMETHEUS\}$/.test(datasource.uid))).toEqual([]);
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  const places = dashboard.panels.flatMap(({ gridPos: { h, w, x, y } }) =>
    Array.from({ length: h * w }, (_, n) => `${x + (n % w)} ${y + Math.floor(n / w)}`),
  );
  expect(new Set(places).size).toBe(places.length);
  expect(dashboard.panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
});

test.each(targets.map(({ title, expr, legendFormat }) => [title, expr, legendFormat]))(
  'the panel %s has a valid expression: %s',
  (_, expr, legend) => {
    const words = tokens(expr);
    const open: string[] = [];
    const pairs: Record<string, string> = { ')': '(', '}': '{' };
    const names: string[] = [];
    const labels: string[] = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, name = '']) => name);
    words.forEach((word, at) => {
      if (word === '(' || word === '{') open.push(word);
      if (pairs[word] !== undefined) expect(open.pop()).toBe(pairs[word]);
      if (!/^[a-z_]/i.test(word) || FUNCTIONS.has(word)) return;
      const grouped = words.lastIndexOf('by', at) > words.lastIndexOf(')', at);
      if (open.at(-1) === '{' || grouped) labels.push(word);
      else names.push(word);
    });
    expect(open).toEqual([]);
    expect(names).toHaveLength(1);
    const metric = metricOf(names[0] as string);
    expect(labels.filter((label) => ![...metric.labels, ...SCRAPED].includes(label))).toEqual([]);
    // A counter is shown by its rate, a histogram by its quantiles, and a gauge by its value.
    expect(words.includes('rate')).toBe(metric.type !== 'gauge');
    expect(words.includes('histogram_quantile')).toBe(metric.histogram);
  },
);

test('every metric of the services and the proxy has a panel', () => {
  const shown = targets.map(({ expr }) => expr).join(' ');
  expect([...own.keys()].filter((name) => !new RegExp(`\\b${name}(_bucket)?\\b`).test(shown))).toEqual([]);
});

test('the variables of the dashboard read existing labels', () => {
  const queries = dashboard.templating.list.filter(({ type }) => type === 'query');
  expect(queries.length).toBeGreaterThan(0);
  for (const { name, definition = '' } of queries) {
    const [, metric = '', label = ''] = /^label_values\((\w+)(?:\{[^}]*\})?, (\w+)\)$/.exec(definition) ?? [];
    expect(label).toBe(name);
    expect(own.get(metric)?.labels).toContain(label);
  }
});
