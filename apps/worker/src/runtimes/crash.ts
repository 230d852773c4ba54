// Contract 2, "Errors", `replica_crashed` and `out_of_memory`: why a function's process died, as far as its exit shows.
import type { ErrorFields } from '@inference-proxy/contracts';
import type { ProcessEnd } from './app-process.ts';

const MIB = 2 ** 20;

/** V8 prints this line before it aborts a process with a full heap. */
const reportsFullHeap = (line: string): boolean =>
  line.startsWith('FATAL ERROR: ') && line.includes('JavaScript heap out of memory');

/**
 * Returns the error of every run of a replica whose process ended by itself or exceeded its memory limit.
 *
 * @param whose the owner of the process, as text
 * @param stderr the last lines that the process printed to stderr
 */
export function crashError(
  { code, signal, overMemory }: Omit<ProcessEnd, 'killed'>,
  whose = 'the function',
  stderr: readonly string[] = [],
): ErrorFields {
  if (overMemory !== undefined) {
    const held = Math.ceil(overMemory / MIB);
    return {
      code: 'out_of_memory',
      message: `${whose}'s processes were ended: they held ${held} MiB, over the app's limit ([hardware] memory)`,
    };
  }
  if (signal === 'SIGKILL') {
    return {
      code: 'out_of_memory',
      message: `${whose}'s process was killed, likely because the machine ran out of memory`,
    };
  }
  if (signal === 'SIGABRT' && stderr.some(reportsFullHeap)) {
    return {
      code: 'out_of_memory',
      message: `${whose}'s process ended: its JavaScript heap reached its limit, a part of the app's memory ([hardware] memory)`,
    };
  }
  const how = signal === null ? `exited with code ${code ?? 'unknown'}` : `died of ${signal}`;
  return { code: 'replica_crashed', message: `${whose}'s process ${how}` };
}
