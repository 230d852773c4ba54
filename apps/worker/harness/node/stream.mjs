// PROTOCOL.md, "Pace" and "Latency": takes the items of a function's stream, one at a time, and sends them.
import { turn } from './clock.mjs';
import { formatted } from './failures.mjs';
import { isThenable } from './sources.mjs';

/** Ends a stream whose run was cancelled. */
export class Cancelled extends Error {}

/**
 * Sends every item of a source. Never calls `next()` without credit.
 *
 * @param {import('./run.mjs').Run} run
 * @param {import('./types.d.ts').ItemSource} source
 * @param {import('./channel.mjs').Channel} channel
 * @throws {Cancelled} and what the function throws
 */
export async function sendItems(run, source, channel) {
  const items = run.beginStream();
  /** Resolves when the source has ended early. @type {Promise<void> | undefined} */
  let stopped;
  /** Ends the wait for a step. */
  let giveUp = () => {};
  const stop = () => {
    stopped ??= ended(source);
    return stopped;
  };
  run.stopSource = () => void stop().then(giveUp);
  try {
    for (;;) {
      if (run.cancelled || run.over) throw new Cancelled();
      let step = /** @type {IteratorResult<unknown> | PromiseLike<IteratorResult<unknown>>} */ (source.next());
      if (isThenable(step)) {
        const pending = step;
        // An iterator may never settle a pending `next()`, even after its end. A generator settles each in turn.
        step = source.settles
          ? await pending
          : await new Promise((resolve, reject) => {
              giveUp = () => reject(new Cancelled());
              pending.then(resolve, reject);
            });
      }
      if (step.done) {
        // A generator that ends by itself has succeeded. Every other source has ended because of the cancel.
        if (stopped !== undefined && !source.settles) throw new Cancelled();
        return;
      }
      const value = isThenable(step.value) ? await step.value : step.value;
      if (run.cancelled || run.over) throw new Cancelled();
      if (source.isBytes) items.addBytes(/** @type {Buffer} */ (value));
      else if (!items.add(value)) continue;
      await (items.missesCredit() ?? turn());
      if (channel.isFull) await channel.drained();
      items.checkOverflow();
    }
  } catch (error) {
    await stop();
    throw error;
  } finally {
    run.stopSource = undefined;
  }
}

/**
 * Ends a source early. Resolves when its `finally` blocks have run.
 *
 * @param {import('./types.d.ts').ItemSource} source
 */
async function ended(source) {
  try {
    await source.stop(new DOMException('the run was cancelled', 'AbortError'));
  } catch (error) {
    process.stderr.write(`${formatted(error)}\n`);
  }
}
