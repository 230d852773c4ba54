// `inference-proxy runs`: lists runs, shows one run, and reads the stream of a run (contract 5).
import type { Command } from 'commander';
import { Option } from 'commander';
import { printStream } from '../calls/stream.ts';
import type { Settings } from '../settings.ts';
import { type CommonOptions, defineCommand, segment, toolsOf, wholeNumber } from '../terminal/command.ts';
import { fields, table } from '../terminal/output.ts';

const STATES = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'timed_out', 'expired'];

interface ListOptions extends CommonOptions {
  readonly app?: string;
  readonly function?: string;
  readonly status?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

interface Listed {
  readonly run_id: string;
  readonly app: string;
  readonly function: string;
  readonly status: string;
  readonly accepted_at: string;
  readonly run_time_ms?: number;
}

export function addRuns(program: Command, settings: Settings): void {
  const runs = program.command('runs').description('Lists and reads runs');
  addList(runs, settings);
  addShow(runs, settings);
  addRunStream(runs, settings);
}

function addList(runs: Command, settings: Settings): void {
  defineCommand(runs, {
    form: 'list',
    isDefault: true,
    does: 'Lists the runs of the project, newest first',
    connects: true,
    examples: [
      ['inference-proxy runs list', 'print the newest 50 runs'],
      ['inference-proxy runs list --app hello --status failed --limit 100', 'print the failed runs of an app'],
    ],
  })
    .option('--app <name>', 'runs of this app only')
    .option('--function <name>', 'runs of this function only')
    .addOption(new Option('--status <state>', 'runs in this state only').choices(STATES))
    .option('--limit <n>', 'number of runs, 1 to 100', wholeNumber(1))
    .option('--cursor <text>', 'continue after an earlier list')
    .action(async (options: ListOptions) => {
      const { output, service } = toolsOf(settings, options);
      const { app, function: fn, status, limit, cursor } = options;
      const text = await service().text('GET', '/runs', { query: { app, function: fn, status, limit, cursor } });
      const page = JSON.parse(text) as { runs: Listed[]; cursor?: string };
      output.result(text, () =>
        table(
          ['RUN', 'FUNCTION', 'STATUS', 'ACCEPTED', 'MS'],
          page.runs.map((run) => [
            run.run_id,
            `${run.app}/${run.function}`,
            run.status,
            run.accepted_at,
            run.run_time_ms === undefined ? '' : String(run.run_time_ms),
          ]),
        ),
      );
      if (page.cursor !== undefined) output.remark(`More runs: --cursor ${page.cursor}`);
    });
}

function addShow(runs: Command, settings: Settings): void {
  defineCommand(runs, {
    form: 'show <run>',
    does: 'Prints the state, the times and the result of a run',
    connects: true,
    examples: [['inference-proxy runs show 01a1fc42-ca24-7b52-9d40-3f6a2c8e5b17', 'print one run']],
  }).action(async (run: string, options: CommonOptions) => {
    const { output, service } = toolsOf(settings, options);
    const text = await service().text('GET', `/runs/${segment(run)}`);
    output.result(text, () => fields(text));
  });
}

function addRunStream(runs: Command, settings: Settings): void {
  defineCommand(runs, {
    form: 'stream <run>',
    does: 'Prints the items of a run, then the live items',
    connects: true,
    examples: [
      [
        'inference-proxy runs stream 01a1fc42-ca24-7b52-9d40-3f6a2c8e5b17 --after 3',
        'continue a broken stream after item 3',
      ],
    ],
  })
    .option('--after <number>', 'begin after this item', wholeNumber(0))
    .option('--logs', 'print the lines that the function logs on standard error')
    .action(async (run: string, options: CommonOptions & { after?: number; logs?: boolean }) => {
      const { output, service: connect } = toolsOf(settings, options);
      const service = connect();
      const query = { events: 'full', after: options.after };
      const answer = await service.send('GET', `/runs/${segment(run)}/stream`, { query });
      await printStream(service, answer, output, options.logs === true);
    });
}
