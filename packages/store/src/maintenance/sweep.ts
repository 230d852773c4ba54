// Contract 5, "Retention and limits": forgets runs of a project, by sweep.lua.
import { listIn, numberIn, type Script, type ScriptReply, textIn } from '../scripts.ts';

export interface SweepArguments {
  /** Runs handled at most, per kind. */
  readonly most: number;
  /** Bytes to which the project's runs must shrink; absent: no limit. */
  readonly downTo: number | undefined;
  /** Further time for which a run with a reader stays. */
  readonly readMs: number;
}

export interface Swept {
  /** Further runs can be removed. */
  readonly more: boolean;
  /** Bytes that the project's runs take. */
  readonly bytes: number;
  /** End of the earliest retention among the unpromised and the promised ended runs, Unix ms; infinite without such a run. */
  readonly nextKept: number;
  readonly nextPromise: number;
}

export const sweepScript: Script<SweepArguments, Swept> = {
  name: 'sweep',
  encode: ({ most, downTo, readMs }) => [most, downTo ?? '', readMs],
  decode: (reply) => {
    const [more, bytes, kept, promise] = listIn(reply);
    return { more: more === 1, bytes: numberIn(bytes), nextKept: timeIn(kept), nextPromise: timeIn(promise) };
  },
};

function timeIn(value: ScriptReply | undefined): number {
  const text = textIn(value);
  return text === '' ? Number.POSITIVE_INFINITY : Number(text);
}
