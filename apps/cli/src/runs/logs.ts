// `inference-proxy logs`: prints the lines that a run printed or logged (contract 5, "Logs: `GET /runs/{run_id}/logs`").
import type { Command } from 'commander';
import { eventsOf } from '../service/events.ts';
import { failureOf } from '../service/failures.ts';
import type { Settings } from '../settings.ts';
import { type CommonOptions, defineCommand, segment, toolsOf, wholeNumber } from '../terminal/command.ts';

interface Options extends CommonOptions {
  readonly follow?: boolean;
  readonly after?: number;
}

interface Line {
  readonly stream: string;
  readonly time: string;
  readonly text: string;
}

export function addLogs(program: Command, settings: Settings): void {
  defineCommand(program, {
    form: 'logs <run>',
    does: 'Prints the lines that a run printed or logged',
    connects: true,
    examples: [
      ['inference-proxy logs 01a1fc42-ca24-7b52-9d40-3f6a2c8e5b17', 'print the lines so far'],
      ['inference-proxy logs 01a1fc42-ca24-7b52-9d40-3f6a2c8e5b17 --follow', 'print lines until the run ends'],
    ],
  })
    .option('-f, --follow', 'print new lines until the run ends')
    .option('--after <number>', 'begin after this line', wholeNumber(0))
    .action(async (run: string, options: Options) => {
      const { output, service: connect } = toolsOf(settings, options);
      const service = connect();
      const path = `/runs/${segment(run)}/logs`;
      if (!options.follow) {
        const text = await service.text('GET', path, { query: { after: options.after } });
        const { logs, cut } = JSON.parse(text) as { logs: Line[]; cut: number };
        output.result(text, () => logs.map((line) => line.text).join('\n'));
        if (cut > 0) output.remark(`The service dropped the first ${cut} lines`);
        return;
      }
      const answer = await service.send('GET', path, { query: { follow: true, after: options.after } });
      if (answer.status === 204) return;
      for await (const { event, data } of eventsOf(answer, service.url)) {
        if (event === 'error') throw failureOf(500, data);
        const line = JSON.parse(data) as Line;
        output.item(line, () => line.text);
      }
    });
}
