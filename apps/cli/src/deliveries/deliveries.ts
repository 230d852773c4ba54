// `inference-proxy deliveries` and `inference-proxy redeliver` (contract 5, "Deliveries").
import { type Command, Option } from 'commander';
import { Failure } from '../service/failures.ts';
import type { Query } from '../service/service.ts';
import type { Settings } from '../settings.ts';
import { type CommonOptions, defineCommand, segment, toolsOf, wholeNumber } from '../terminal/command.ts';
import { table } from '../terminal/output.ts';

interface Filters extends CommonOptions {
  readonly status?: string;
  readonly host?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

interface Delivery {
  readonly delivery_id: string;
  readonly run_id: string;
  readonly url: string;
  readonly status: string;
  readonly attempts: number;
  /** Every attempt. Present in the answer for one run. */
  readonly log?: readonly Attempt[];
  readonly next_attempt_at?: string;
}

interface Attempt {
  readonly attempt: number;
  readonly at: string;
  readonly duration_ms: number;
  readonly status?: number;
  readonly error?: string;
}

const withFilters = (command: Command): Command =>
  command
    .addOption(
      new Option('--status <state>', 'deliveries in this state only').choices(['pending', 'delivered', 'failed']),
    )
    .option('--host <name>', 'deliveries to this host only')
    .option('--since <time>', 'deliveries from this time on (RFC 3339)')
    .option('--until <time>', 'deliveries before this time (RFC 3339)');

const filtersOf = ({ status, host, since, until, limit, cursor }: Filters): Query => ({
  status,
  host,
  since,
  until,
  limit,
  cursor,
});

export function addDeliveries(program: Command, settings: Settings): void {
  const deliveries = program.command('deliveries').description('Lists and reads webhook deliveries');
  const list = defineCommand(deliveries, {
    form: 'list',
    isDefault: true,
    does: 'Lists the deliveries of the project',
    connects: true,
    examples: [['inference-proxy deliveries list --status failed', 'print the deliveries that failed for good']],
  });
  withFilters(list)
    .option('--limit <n>', 'number of deliveries, 1 to 100', wholeNumber(1))
    .option('--cursor <text>', 'continue after an earlier list')
    .action(async (options: Filters) => {
      const { output, service } = toolsOf(settings, options);
      const text = await service().text('GET', '/deliveries', { query: filtersOf(options) });
      const page = JSON.parse(text) as { deliveries: Delivery[]; cursor?: string };
      output.result(text, () => deliveryTable(page.deliveries));
      if (page.cursor !== undefined) output.remark(`More deliveries: --cursor ${page.cursor}`);
    });
  defineCommand(deliveries, {
    form: 'show <run>',
    does: 'Prints the deliveries of a run with every attempt',
    connects: true,
    examples: [['inference-proxy deliveries show 01a1fc42-ca24-7b52-9d40-3f6a2c8e5b17', 'print every attempt']],
  }).action(async (run: string, options: CommonOptions) => {
    const { output, service } = toolsOf(settings, options);
    const text = await service().text('GET', `/runs/${segment(run)}/deliveries`);
    const page = JSON.parse(text) as { deliveries: Delivery[] };
    output.result(text, () => page.deliveries.map(withAttempts).join('\n\n'));
  });
}

const deliveryTable = (deliveries: readonly Delivery[]): string =>
  table(
    ['DELIVERY', 'RUN', 'STATUS', 'ATTEMPTS', 'URL'],
    deliveries.map((one) => [one.delivery_id, one.run_id, one.status, String(one.attempts), one.url]),
  );

const withAttempts = (one: Delivery): string =>
  [
    `${one.delivery_id}  ${one.status}  ${one.url}`,
    table(
      ['ATTEMPT', 'AT', 'MS', 'ANSWER'],
      (one.log ?? []).map(({ attempt, at, duration_ms, status, error }) => [
        String(attempt),
        at,
        String(duration_ms),
        String(status ?? error ?? ''),
      ]),
    ),
    ...(one.next_attempt_at === undefined ? [] : [`next attempt at ${one.next_attempt_at}`]),
  ].join('\n');

export function addRedeliver(program: Command, settings: Settings): void {
  const command = defineCommand(program, {
    form: 'redeliver [run] [delivery]',
    does: 'Sends one delivery again, or with --all every failed delivery',
    connects: true,
    examples: [
      [
        'inference-proxy redeliver 01a1fc42-ca24-7b52-9d40-3f6a2c8e5b17 msg_01a1fc42ca247b529d403f6a2c8e5b17',
        'send one delivery again',
      ],
      [
        'inference-proxy redeliver --all --host receiver.example.com --since 2026-11-21T00:00:00Z',
        'send all failed deliveries of a receiver again',
      ],
    ],
  }).option('--all', 'send all deliveries that match the filters; default: the failed ones');
  withFilters(command).action(
    async (run: string | undefined, delivery: string | undefined, options: Filters & { all?: boolean }) => {
      const { output, service: connect } = toolsOf(settings, options);
      if (options.all ? run !== undefined : run === undefined || delivery === undefined)
        throw new Failure('usage', 'Name a run and a delivery, or use --all');
      const service = connect();
      if (run !== undefined && delivery !== undefined) {
        const path = `/runs/${segment(run)}/deliveries/${segment(delivery)}/redeliver`;
        const text = await service.text('POST', path);
        output.result(text, () => `The delivery ${delivery} is sent again`);
        return;
      }
      const sum = { redelivered: 0, under_way: 0 };
      let cursor: string | undefined;
      do {
        const text = await service.text('POST', '/deliveries/redeliver', { query: { ...filtersOf(options), cursor } });
        const page = JSON.parse(text) as { redelivered: number; under_way: number; cursor?: string };
        sum.redelivered += page.redelivered;
        sum.under_way += page.under_way;
        cursor = page.cursor;
      } while (cursor !== undefined);
      output.result(JSON.stringify(sum), () => `${sum.redelivered} deliveries are sent again`);
    },
  );
}
