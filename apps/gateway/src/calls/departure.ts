// Contract 1 (`onDisconnect`): noticing that a caller has gone, or that this gateway must go, while an answer is still to come.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ServiceError } from '@inference-proxy/contracts';
import { lastOnItsConnection } from '../http/last-answers.ts';
import { probeUntilClosed } from './half-closed.ts';

/** Why an answer ends before its run does: the caller has gone, or this gateway stops (the error to tell). */
export type Interruption = 'gone' | ServiceError;

/** For the last bytes of interrupted answers to leave. */
const FLUSH_MS = 2000;

/** One call under way. */
export class OpenCall {
  #interruption: Interruption | undefined;
  #listener: ((why: Interruption) => void) | undefined;
  #prober: (() => void) | undefined;

  constructor(
    private readonly ended: (call: OpenCall) => void,
    readonly raw: ServerResponse,
  ) {}

  get interruption(): Interruption | undefined {
    return this.#interruption;
  }

  /** Called once, at once when it has happened already. The latest listener counts. */
  onInterrupt(listener: (why: Interruption) => void): void {
    this.#listener = listener;
    if (this.#interruption !== undefined) listener(this.#interruption);
  }

  interrupt(why: Interruption): void {
    if (this.#interruption !== undefined) return;
    this.#interruption = why;
    this.#listener?.(why);
  }

  /** What the answer under way can have written that changes nothing, once its head is out. The latest counts. */
  onProbe(listener: () => void): void {
    this.#prober = listener;
  }

  /** Has such a thing written: an interim answer (RFC 9110 §15.2), or what the answer has told. */
  probe(): void {
    // Another call's answer is still before this one on its connection.
    if (this.raw.socket === null) return;
    if (this.raw.headersSent) this.#prober?.();
    else this.raw.writeContinue();
  }

  /** The answer is written, or will never be. */
  end(): void {
    this.#listener = undefined;
    this.ended(this);
  }
}

/** All calls under way in this gateway. */
export class OpenCalls {
  readonly #open = new Set<OpenCall>();
  /** One pair of listeners per connection, however many calls it carries, one after another or pipelined. */
  readonly #bySocket = new WeakMap<Socket, Set<OpenCall>>();
  #leaving = false;
  #stopping = false;
  #whenEmpty: (() => void) | undefined;

  /** Whether balancers should look elsewhere. */
  get leaving(): boolean {
    return this.#leaving;
  }

  /** @throws ServiceError `unavailable` when this gateway is stopping */
  begin(raw: ServerResponse): OpenCall {
    if (this.#stopping) throw new ServiceError('unavailable', 'This gateway is stopping; call again.');
    const { socket } = raw.req;
    const beside = this.#bySocket.get(socket) ?? this.#watch(socket);
    const remove = (ended: OpenCall): void => {
      beside.delete(ended);
      this.#open.delete(ended);
      if (this.#open.size === 0) this.#whenEmpty?.();
    };
    const call = new OpenCall((ended) => {
      // Connections are closed when no call is under way: not before the answer has left.
      if (this.#stopping && !raw.writableFinished && !raw.destroyed) raw.once('close', () => remove(ended));
      else remove(ended);
    }, raw);
    beside.add(call);
    this.#open.add(call);
    if (socket.destroyed) call.interrupt('gone');
    return call;
  }

  /** The answers under way become the last on their connections (http/last-answers.ts); further calls are still taken. */
  leave(): void {
    this.#leaving = true;
    for (const { raw } of this.#open) lastOnItsConnection(raw);
  }

  /** Takes no further calls. */
  refuse(): void {
    this.#stopping = true;
  }

  /** Resolves when no call is under way; those that are left at `graceMs` are interrupted. */
  async drain(graceMs: number): Promise<void> {
    if (this.#open.size === 0) return;
    const empty = Promise.withResolvers<void>();
    this.#whenEmpty = empty.resolve;
    const interrupting = setTimeout(() => {
      const why = new ServiceError('unavailable', 'This gateway is stopping; call again.');
      for (const call of [...this.#open]) call.interrupt(why);
    }, graceMs);
    const givingUp = setTimeout(empty.resolve, graceMs + FLUSH_MS);
    await empty.promise;
    clearTimeout(interrupting);
    clearTimeout(givingUp);
  }

  #watch(socket: Socket): Set<OpenCall> {
    const calls = new Set<OpenCall>();
    const halfClosed = (): void => {
      // HTTP/1.0 has no interim answers, so nothing would tell.
      if ([...calls].some(({ raw }) => raw.req.httpVersion === '1.0')) socket.destroy();
      else {
        // Node closes the connection after the answer to the last request; it is said in that answer.
        const last = [...calls].at(-1);
        if (last) last.raw.shouldKeepAlive = false;
        probeUntilClosed(socket, () => {
          for (const call of calls) call.probe();
        });
      }
    };
    socket.once('end', halfClosed).once('close', () => {
      for (const call of [...calls]) call.interrupt('gone');
    });
    // While its token's key was fetched.
    if (socket.readableEnded) setImmediate(halfClosed);
    this.#bySocket.set(socket, calls);
    return calls;
  }
}
