// `inference-proxy cancel`: requests the cancel of a run (contract 5, "Cancel: `POST /runs/{run_id}/cancel`").
import type { Command } from 'commander';
import type { Settings } from '../settings.ts';
import { type CommonOptions, defineCommand, segment, toolsOf } from '../terminal/command.ts';

export function addCancel(program: Command, settings: Settings): void {
  defineCommand(program, {
    form: 'cancel <run>',
    does: 'Cancels a run',
    connects: true,
    examples: [['inference-proxy cancel 01a1fc42-ca24-7b52-9d40-3f6a2c8e5b17', 'request the cancel']],
  }).action(async (run: string, options: CommonOptions) => {
    const { output, service } = toolsOf(settings, options);
    const text = await service().text('POST', `/runs/${segment(run)}/cancel`);
    output.result(text, () => `The cancel of run ${run} was requested`);
  });
}
