// `inference-proxy stream`: calls a function and prints each item when the function yields it.
import type { Command } from 'commander';
import { eventsOf } from '../service/events.ts';
import { Failure, failureOf } from '../service/failures.ts';
import type { Answer, Service } from '../service/service.ts';
import type { Settings } from '../settings.ts';
import { type CommonOptions, defineCommand, toolsOf } from '../terminal/command.ts';
import type { Output } from '../terminal/output.ts';
import { type CallOptions, callRequest, functionPath, withCallOptions } from './request.ts';

interface Options extends CommonOptions, CallOptions {
  readonly logs?: boolean;
}

export function addStream(program: Command, settings: Settings): void {
  const command = defineCommand(program, {
    form: 'stream',
    does: 'Calls a function and prints each item when the function yields it',
    connects: true,
    examples: [
      [`inference-proxy stream hello/run '{"upper_range": 5}'`, 'print the items, one on each line'],
      [
        `inference-proxy stream hello/run '{"upper_range": 5}' --logs`,
        'print what the function logs on standard error too',
      ],
      [`inference-proxy stream hello/run '{"upper_range": 5}' --json`, 'print every event as one line of JSON'],
    ],
  });
  withCallOptions(command)
    .option('--logs', 'print the lines that the function logs on standard error')
    .action(async (name: string, parameters: string, options: Options) => {
      const { output, service: connect } = toolsOf(settings, options);
      const service = connect();
      const request = await callRequest(parameters, options, settings);
      const answer = await service.send('POST', functionPath(name), {
        ...request,
        query: { ...request.query, events: 'full' },
        headers: { ...request.headers, accept: 'text/event-stream' },
      });
      await printStream(service, answer, output, options.logs === true);
    });
}

/** The data of the events `queued`, `log`, `error` and `done` is JSON. The data of an item is the text that a plain stream sends. */
const OF_THE_SERVICE = new Set(['queued', 'started', 'log', 'error', 'done']);

/**
 * Prints a rich stream (contract 3, "The rich stream: `?events=full`").
 *
 * @throws Failure if the run fails, or if the stream breaks before its end
 */
export async function printStream(service: Service, answer: Answer, output: Output, logs: boolean): Promise<void> {
  if (answer.status === 204) return;
  if (!answer.contentType.startsWith('text/event-stream')) {
    const text = await answer.text();
    output.result(text, () => text);
    return;
  }
  let runId: string | undefined;
  let last: string | undefined;
  let broken: Failure | undefined;
  try {
    for await (const { event = 'message', id, data } of eventsOf(answer, service.url)) {
      last = id ?? last;
      const body: unknown = OF_THE_SERVICE.has(event) ? JSON.parse(data) : data;
      if (event === 'error') throw failureOf(500, JSON.stringify({ status: 'failed', ...(body as object) }));
      if (output.json) output.item({ event, ...(id !== undefined && { id: Number(id) }), data: body }, () => '');
      if (event === 'done') return;
      if (event === 'queued') runId = (body as { run_id: string }).run_id;
      else if (event === 'log' && logs && !output.json) output.aside((body as { text: string }).text);
      else if (!OF_THE_SERVICE.has(event) && !output.json) output.item(data, () => data);
    }
  } catch (error) {
    if (!(error instanceof Failure) || error.exit !== 'unavailable') throw error;
    broken = error;
  }
  // The stream of a web server has no `queued` event and no `done` event.
  if (broken === undefined && runId === undefined) return;
  const next = runId === undefined ? '' : `: read on with inference-proxy runs stream ${runId} --after ${last ?? 0}`;
  throw new Failure('unavailable', `${broken?.message ?? 'The stream ended before the run'}${next}`);
}
