// Contract 2, `replica_crashed` and `out_of_memory`: why a function's process died, as far as its end tells.
import type { ErrorFields } from '@inference-proxy/contracts';

/** The error of every run that a replica had, when its process ended by itself. */
export function crashError(code: number | null, signal: NodeJS.Signals | null): ErrorFields {
  if (signal === 'SIGKILL') {
    return {
      code: 'out_of_memory',
      message: "the function's process was killed, likely because the machine ran out of memory",
    };
  }
  const how = signal === null ? `exited with code ${code ?? 'unknown'}` : `died of ${signal}`;
  return { code: 'replica_crashed', message: `the function's process ${how}` };
}
