// `inference-proxy call`: calls a function and prints its result.
import type { Command } from 'commander';
import type { Settings } from '../settings.ts';
import { type CommonOptions, defineCommand, toolsOf, wholeNumber } from '../terminal/command.ts';
import { parseExact, readable } from '../terminal/exact-json.ts';
import { type CallOptions, callRequest, functionPath, withCallOptions } from './request.ts';

interface Options extends CommonOptions, CallOptions {
  readonly async?: boolean;
  readonly wait?: number;
}

export function addCall(program: Command, settings: Settings): void {
  const command = defineCommand(program, {
    form: 'call',
    does: 'Calls a function and prints its result',
    connects: true,
    examples: [
      [`inference-proxy call hello/greet '{"name": "Ada"}'`, 'print the result'],
      [
        'inference-proxy call hello/run @parameters.json --json',
        'read the parameters from a file, print the whole answer',
      ],
      [`inference-proxy call hello/run '{"upper_range": 5}' --async`, 'print the id of the run at once'],
    ],
  });
  withCallOptions(command)
    .option('--async', 'return the id of the run at once')
    .option('--wait <seconds>', 'return the id of the run after this time, if the run has not ended', wholeNumber(0))
    .action(async (name: string, parameters: string, options: Options) => {
      const { output, service } = toolsOf(settings, options);
      const request = await callRequest(parameters, options, settings);
      const answer = await service().send('POST', functionPath(name), {
        ...request,
        query: { ...request.query, async: options.async || undefined },
        headers: { ...request.headers, ...(options.wait !== undefined && { prefer: `wait=${options.wait}` }) },
      });
      const text = await answer.text();
      if (!/^application\/json\b/.test(answer.contentType)) {
        output.result(JSON.stringify({ content_type: answer.contentType, body: text }), () => text);
        return;
      }
      output.result(text, () => resultText(text));
      const { run_id, status, run_time_ms } = parseExact(text) as Record<string, unknown>;
      if (status !== undefined) output.remark(`run ${run_id} ${status} in ${readable(run_time_ms)} ms`);
    });
}

/** Returns the result of an envelope, the run's id of a 202 answer, or the whole answer of a web server. */
function resultText(text: string): string {
  const body = parseExact(text);
  if (typeof body !== 'object' || body === null || !('run_id' in body)) return readable(body);
  return readable('result' in body ? body.result : body.run_id);
}
