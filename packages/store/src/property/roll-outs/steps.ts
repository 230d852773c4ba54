// Generates the steps of a history of deployments and calls as data. fast-check shrinks and prints them if a history fails.
import fc from 'fast-check';

/** Fate of a call of the store. `lost`: it is executed, its reply is lost, and the caller repeats it later. */
export type Fate = 'answered' | 'lost';

export type Step =
  | { readonly type: 'calls'; readonly count: number; readonly fate: Fate }
  | { readonly type: 'deploy'; readonly version: number; readonly mode: 'activate' | 'build'; readonly fate: Fate }
  | { readonly type: 'activate'; readonly version: number; readonly fate: Fate }
  /** A worker reads the deployment. */
  | { readonly type: 'look'; readonly worker: number }
  | { readonly type: 'report'; readonly worker: number; readonly step: ReportedStep; readonly fate: Fate }
  | { readonly type: 'take'; readonly worker: number; readonly slots: number; readonly fate: Fate }
  | { readonly type: 'end'; readonly worker: number; readonly how: End; readonly fate: Fate }
  | { readonly type: 'die' | 'freeze' | 'thaw'; readonly worker: number }
  | { readonly type: 'roll-outs' | 'trim' }
  | { readonly type: 'wait'; readonly ms: number }
  /** The worker does all that a healthy worker does. */
  | { readonly type: 'work'; readonly worker: number }
  /** An earlier call is executed once more: a copy of it was late on a broken connection. `back` counts from the newest call. */
  | { readonly type: 'late copy'; readonly back: number };

export type ReportedStep = 'preparing' | 'waiting' | 'ready' | 'failed';

/** The end of a function. `crash`: its process dies, and the run wants a second attempt. */
export type End = 'return' | 'raise' | 'crash';

/** Number of versions that are deployed in a history. */
export const VERSIONS = 5;
/** Number of workers at a time. A worker that dies is replaced. */
export const WORKERS = 3;

const version = fc.nat({ max: VERSIONS - 1 });
const worker = fc.nat({ max: WORKERS - 1 });
const fate = fc.constantFrom<Fate>('answered', 'answered', 'answered', 'lost');
const of = <const Type extends string, More extends object>(
  type: Type,
  more: { [Key in keyof More]: fc.Arbitrary<More[Key]> },
) => fc.record({ type: fc.constant(type), ...more }) as fc.Arbitrary<{ type: Type } & More>;

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: of('calls', { count: fc.integer({ min: 1, max: 3 }), fate }) },
  {
    weight: 5,
    arbitrary: of('deploy', { version, mode: fc.constantFrom('activate', 'activate', 'activate', 'build'), fate }),
  },
  { weight: 3, arbitrary: of('activate', { version, fate }) },
  { weight: 6, arbitrary: of('look', { worker }) },
  {
    weight: 10,
    arbitrary: of('report', {
      worker,
      step: fc.constantFrom('preparing', 'waiting', 'ready', 'ready', 'ready', 'ready', 'failed'),
      fate,
    }),
  },
  { weight: 14, arbitrary: of('work', { worker }) },
  { weight: 8, arbitrary: of('take', { worker, slots: fc.integer({ min: 1, max: 4 }), fate }) },
  { weight: 8, arbitrary: of('end', { worker, how: fc.constantFrom('return', 'return', 'raise', 'crash'), fate }) },
  { weight: 1, arbitrary: of('die', { worker }) },
  { weight: 1, arbitrary: of('freeze', { worker }) },
  { weight: 2, arbitrary: of('thaw', { worker }) },
  { weight: 3, arbitrary: of('roll-outs', {}) },
  { weight: 2, arbitrary: of('trim', {}) },
  { weight: 5, arbitrary: of('wait', { ms: fc.constantFrom(1_000, 4_000, 4_000, 20_000) }) },
  { weight: 5, arbitrary: of('late copy', { back: fc.nat({ max: 12 }) }) },
);

/** Generates a history. */
export const history: fc.Arbitrary<Step[]> = fc.array(step, { minLength: 60, maxLength: 120, size: 'max' });
