// Questions in a terminal. A cancelled question ends the program like Ctrl-C.
import { isCancel } from '@clack/prompts';
import { Failure } from '../service/failures.ts';

/** Returns the answer of a prompt. @throws Failure if the user cancelled the prompt */
export function answered<Value>(answer: Value): Exclude<Value, symbol> {
  if (isCancel(answer)) throw new Failure('interrupted', 'Cancelled');
  return answer as Exclude<Value, symbol>;
}
