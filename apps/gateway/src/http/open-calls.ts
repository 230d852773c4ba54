// Contract 1, "Disconnects": notices that a caller has disconnected, or that this gateway stops, before the answer is complete.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ServiceError } from '@inference-proxy/contracts';
import { probeUntilClosed } from './half-closed.ts';
import { lastOnItsConnection } from './last-answers.ts';

/** Why an answer ends before its run. `gone`: the caller has disconnected. An error: this gateway stops, and sends the error. */
export type Interruption = 'gone' | ServiceError;

/** Time in which the last bytes of interrupted answers can be sent. */
const FLUSH_MS = 2000;

/** One call whose answer is not complete. */
export class OpenCall {
  #interruption: Interruption | undefined;
  #listener: ((why: Interruption) => void) | undefined;
  #prober: (() => void) | undefined;

  readonly #ended: (call: OpenCall) => void;

  constructor(
    ended: (call: OpenCall) => void,
    readonly raw: ServerResponse,
  ) {
    this.#ended = ended;
  }

  get interruption(): Interruption | undefined {
    return this.#interruption;
  }

  /** Sets the listener. It is called once, and immediately if the interruption has already happened. A later listener replaces it. */
  onInterrupt(listener: (why: Interruption) => void): void {
    this.#listener = listener;
    if (this.#interruption !== undefined) listener(this.#interruption);
  }

  interrupt(why: Interruption): void {
    if (this.#interruption !== undefined) return;
    this.#interruption = why;
    this.#listener?.(why);
  }

  /** Sets how a harmless probe is written into the answer after its head. A later listener replaces it. */
  onProbe(listener: () => void): void {
    this.#prober = listener;
  }

  /** Writes a harmless probe: an interim answer (RFC 9110 §15.2) before the head, or the answer's own probe after the head. */
  probe(): void {
    // The answer of an earlier call on this connection is not complete.
    if (this.raw.socket === null) return;
    if (this.raw.headersSent) this.#prober?.();
    else this.raw.writeContinue();
  }

  /** Ends the call: its answer is written, or will never be written. */
  end(): void {
    this.#listener = undefined;
    this.#ended(this);
  }
}

/** All open calls of this gateway. */
export class OpenCalls {
  readonly #open = new Set<OpenCall>();
  /** One pair of listeners for each connection, even if the connection carries many calls, pipelined or in sequence. */
  readonly #bySocket = new WeakMap<Socket, Set<OpenCall>>();
  #leaving = false;
  #stopping = false;
  #whenEmpty: (() => void) | undefined;

  /** Whether load balancers should choose another gateway. */
  get leaving(): boolean {
    return this.#leaving;
  }

  /** Registers a call. @throws ServiceError `unavailable` if this gateway is stopping */
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
      // Connections are closed when no call is open. A stopping gateway therefore keeps a call open until its answer is sent.
      if (this.#stopping && !raw.writableFinished && !raw.destroyed) raw.once('close', () => remove(ended));
      else remove(ended);
    }, raw);
    beside.add(call);
    this.#open.add(call);
    if (socket.destroyed) call.interrupt('gone');
    return call;
  }

  /** Makes each open answer the last on its connection (http/last-answers.ts). The gateway still accepts further calls. */
  leave(): void {
    this.#leaving = true;
    for (const { raw } of this.#open) lastOnItsConnection(raw);
  }

  /** Rejects further calls. */
  refuse(): void {
    this.#stopping = true;
  }

  /** Resolves when no call is open. Interrupts the calls that are still open after `graceMs`. */
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
      // HTTP/1.0 has no interim answers, so a probe before the head is impossible.
      if ([...calls].some(({ raw }) => raw.req.httpVersion === '1.0')) socket.destroy();
      else {
        // Node closes the connection after the answer to the last request. That answer must announce the close.
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
    // The caller closed its side while the gateway fetched the key of its token.
    if (socket.readableEnded) setImmediate(halfClosed);
    this.#bySocket.set(socket, calls);
    return calls;
  }
}
