// deploy/prometheus: the alert rules are valid, fire as tested, use existing metrics, and each has a section in the runbook.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openRegistry } from '@inference-proxy/platform';
import { expect, test } from '@jest/globals';
import { obtainPromtool } from '../stack/promtool.ts';
import { page, root, tableRows, ticked } from './markdown.ts';

const run = promisify(execFile);
const rules = page('deploy/prometheus/rules.yml');
const alerts = rules
  .split(/^ {6}- alert: /m)
  .slice(1)
  .map((text) => ({
    name: text.split('\n', 1)[0] ?? '',
    expr: /^ {8}expr: (.*)$/m.exec(text)?.[1] ?? '',
    runbook: /^ {10}runbook: (.*)$/m.exec(text)?.[1] ?? '',
  }));

const promtool = await obtainPromtool();
if ('missing' in promtool) process.stderr.write(`alerts: promtool is not run: ${promtool.missing}\n`);
const path = 'path' in promtool ? promtool.path : '';

(path === '' ? test.skip : test)(
  'promtool accepts the rules and the configuration, and every rule fires as tested',
  async () => {
    const folder = join(root, 'deploy', 'prometheus');
    const promtoolSays = async (...args: string[]): Promise<string> => (await run(path, args, { cwd: folder })).stdout;
    expect(await promtoolSays('check', 'rules', 'rules.yml')).toContain(`${alerts.length} rules found`);
    expect(await promtoolSays('check', 'config', '--syntax-only', 'prometheus.yml')).toContain('is valid');
    expect(await promtoolSays('test', 'rules', 'rules.test.yml')).toContain('SUCCESS');
  },
);

test('every alert has a test and a section of its name in the runbook, and the runbook has no other section', () => {
  const tested = new Set(
    [...page('deploy/prometheus/rules.test.yml').matchAll(/alertname: (\w+)/g)].map(([, one]) => one),
  );
  const sections = [...page('docs/operations/runbook.md').matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
  const names = alerts.map(({ name }) => name);
  expect(sections).toEqual(names);
  expect([...tested].sort()).toEqual([...names].sort());
  for (const { name, runbook } of alerts) expect(runbook).toBe(`docs/operations/runbook.md#${name.toLowerCase()}`);
});

test.each(['gateway', 'worker', 'dispatcher', 'redis', 'proxy'])(
  '%s raises an alert if it does not answer and if it is absent',
  (job) => {
    const exprs = alerts.map(({ expr }) => expr);
    expect(exprs.filter((expr) => expr.includes(`up{job="${job}"} == 0`))).toHaveLength(1);
    expect(exprs.filter((expr) => expr.includes(`absent(up{job="${job}"})`))).toHaveLength(1);
    expect(page('deploy/prometheus/prometheus.yml')).toContain(`- job_name: ${job}\n`);
  },
);

test('the rules use only metrics of the services, the exporters or Prometheus', () => {
  const own = ['gateway', 'worker', 'dispatcher', 'proxy'].flatMap((service) =>
    tableRows(page('docs/operations/metrics.md'), new RegExp(`^Metrics of the ${service}$`)).map(
      ([name = '']) => ticked(name)[0],
    ),
  );
  const common = openRegistry()
    .getMetricsAsArray()
    .map(({ name }) => name);
  // Metrics of oliver006/redis_exporter.
  const exporters = ['up', 'redis_up', 'redis_memory_used_bytes', 'redis_memory_max_bytes'];
  const known = new Set([...own, ...common, ...exporters]);
  for (const { name, expr } of alerts) {
    const bare = expr.replaceAll(/"[^"]*"|\{[^}]*\}|by \([^)]*\)|\[\w+\]/g, '');
    const used = [...bare.matchAll(/\b[a-z]\w+\b(?!\s*\()/g)]
      .map(([word]) => word)
      .filter((word) => word !== 'or' && word !== 'by');
    expect([name, used.filter((word) => !known.has(word))]).toEqual([name, []]);
  }
});
