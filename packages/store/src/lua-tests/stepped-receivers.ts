// Contract 4, "Isolation": runs the two scripts of the receivers' slots, with a clock that the test moves.
import { type Reply, type SteppedStore, steppedStores } from './stepped-store.ts';

export const LEASE = 30_000;
export const PROBE = 5_000;
export const HOST = 'slow.test:443';

export interface Woken {
  readonly project: string;
  readonly run: string;
  readonly slot: string;
}

/** Runs the two scripts. A run's name begins with its project: `a1` is a run of project `a`. */
export class Receivers {
  #number = 0;
  perProject = 3;
  perHost = 5;
  /** Number of attempts that a dispatcher may open at a line that has succeeded. */
  grown = 0;

  constructor(readonly store: SteppedStore) {}

  project = 100;

  #head = () => [LEASE, this.perProject, this.perHost, PROBE, this.project];

  async #steps(...steps: (string | number)[][]): Promise<{ answers: string[]; woken: Woken[] }> {
    const [answers, woken] = (await this.store.run('hosts', ...this.#head(), ...steps.flat())) as [string[], Reply[][]];
    return { answers, woken: woken.map(wokenOf) };
  }

  /** Marks a receiver as successful. Other receivers may have one open attempt. */
  async hasSucceeded(project: string, host: string): Promise<void> {
    await this.store.client.set(`${this.store.prefix}succeeded:${project} ${host}`, '1');
  }

  /** @returns the slot, or the reason why the delivery was parked */
  async enter(run: string, how = 'n', slot = `s${++this.#number}`, host = HOST): Promise<string> {
    const { answers } = await this.#steps([
      'acquire',
      run.charAt(0),
      host,
      run,
      1,
      `1 ${run.charAt(0)} ${run} ${slot}`,
      this.grown,
      '',
      how,
    ]);
    return answers[0] === 'open' || answers[0] === 'watched'
      ? `1 ${run.charAt(0)} ${run} ${slot}`
      : (answers[0] as string);
  }

  async leave(slot: string, outcome: 'good' | 'bad' | 'none', host = HOST): Promise<Woken[]> {
    const [, project = '', run = ''] = slot.split(' ');
    return (await this.#steps(['release', project, host, run, 1, slot, this.grown, '', outcome])).woken;
  }

  async drop(slot: string, host = HOST): Promise<Woken[]> {
    const [, project = '', run = ''] = slot.split(' ');
    return (await this.#steps(['release_unused', project, host, run, 1, slot, 0, '', 'none'])).woken;
  }

  async look(): Promise<{ woken: Woken[]; lapsed: string[] }> {
    const [woken, lapsed] = (await this.store.run('host-look', ...this.#head(), 50)) as [Reply[][], string[][]];
    return { woken: woken.map(wokenOf), lapsed: lapsed.map(([, run]) => run as string) };
  }

  /** Makes one attempt: it enters and leaves. */
  async attempt(outcome: 'good' | 'bad' | 'none', run = 'a0'): Promise<string> {
    const slot = await this.enter(run);
    if (slot.startsWith('parked')) return slot;
    await this.leave(slot, outcome);
    return outcome;
  }

  async attempts(count: number, outcome: 'good' | 'bad'): Promise<void> {
    for (let at = 0; at < count; at += 1) await this.attempt(outcome);
  }

  parked = async (): Promise<number> => Number((await this.store.client.get(`${this.store.prefix}parked-count`)) ?? 0);
  keys = async (): Promise<string[]> =>
    (await this.store.client.keys(`${this.store.prefix.replace(/[{}]/g, '?')}*`))
      .map((key) => key.slice(this.store.prefix.length))
      .filter((key) => !key.startsWith('succeeded:'))
      .sort();
}

const wokenOf = ([project, run, , , slot]: Reply[]): Woken => ({
  project: String(project),
  run: String(run),
  slot: String(slot),
});

/** Calls `use` before each test, with receivers of its own. The projects `a` to `d` have succeeded at `HOST`. */
export function steppedReceivers(use: (receivers: Receivers) => void): void {
  steppedStores(async (store) => {
    const receivers = new Receivers(store);
    for (const project of 'abcd') await receivers.hasSucceeded(project, HOST);
    use(receivers);
  });
}
