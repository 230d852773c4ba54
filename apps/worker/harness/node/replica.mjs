// PROTOCOL.md, "Life of a replica": init, ready, runs, drain, bye.
import { App } from './app.mjs';
import { now } from './clock.mjs';
import { errorFields, formatted, messageOf, Refused, typeOf } from './failures.mjs';
import { currentRun, Logs } from './logs.mjs';
import { encode, statusCode, TooLarge } from './output.mjs';
import { parametersOf } from './parameters.mjs';
import { hasNoFilesLeft } from './process.mjs';
import { headOf, itemsOf, piecesOf, wholeBody } from './responses.mjs';
import { Run, RunContext } from './run.mjs';
import { isThenable, sourceOf } from './sources.mjs';
import { Cancelled, sendItems } from './stream.mjs';
import { inTrace } from './trace.mjs';

/** @typedef {import('./types.d.ts').WorkerMessage} WorkerMessage */

/** The replica that `init` describes. */
export class Replica {
  #channel;
  #limits;
  #debug;
  #app;
  #logs;
  /** @type {Map<string, Run>} */
  #runs = new Map();
  #draining = false;

  /**
   * @param {WorkerMessage} init
   * @param {import('./channel.mjs').Channel} channel
   * @param {import('./types.d.ts').AppTypes} [types] the types of the app, if it is TypeScript
   */
  constructor(init, channel, types) {
    this.#channel = channel;
    this.#limits = { item: init.max_item_bytes, output: init.max_output_bytes, log: init.max_log_bytes };
    this.#debug = init.debug;
    this.#app = new App(init.app, init.entry, init.validate ?? true, types);
    this.#logs = new Logs(channel, this.#limits.log);
  }

  /** Imports the app and sets it up. */
  async start() {
    this.#logs.replaceStreams();
    process.on('unhandledRejection', (reason) => this.#rejected(reason));
    process.on('exit', () => this.#exits());
    const startedAt = now();
    let stage = 'load';
    try {
      await this.#app.load();
      stage = 'setup';
      await this.#app.hook('setup');
    } catch (error) {
      const traceback = formatted(error);
      process.stderr.write(`${traceback}\n`);
      this.#logs.finish();
      await this.#channel.finish({ t: 'init_error', stage, type: typeOf(error), message: messageOf(error), traceback });
      process.exit(1);
    }
    const elapsed = Math.round((now() - startedAt) * 1000) / 1000;
    this.#channel.send({ t: 'ready', setup_ms: elapsed, functions: this.#app.describe() });
  }

  /**
   * Handles a message of the worker.
   *
   * @param {WorkerMessage} message
   * @param {Buffer} blob
   */
  receive(message, blob) {
    switch (message.t) {
      case 'run':
        this.#begin(new Run(message, this.#channel, this.#limits), blob);
        break;
      case 'credit':
        this.#runs.get(message.r)?.items?.credit(message.n);
        break;
      case 'cancel':
        this.#cancel(message.r);
        break;
      case 'drain':
        this.#draining = true;
        this.#endIfDrained();
        break;
    }
  }

  /** @param {string} runId */
  #cancel(runId) {
    const run = this.#runs.get(runId);
    if (run === undefined) return; // the run has just ended
    this.#channel.send({ t: 'cancelling', r: runId });
    currentRun.run(run, () => run.cancel());
  }

  /**
   * @param {Run} run
   * @param {Buffer} blob the parameters
   */
  #begin(run, blob) {
    this.#runs.set(run.id, run);
    currentRun.run(run, () => inTrace(run.traceparent, () => this.#call(run, blob)));
  }

  /**
   * @param {Run} run
   * @param {Buffer} blob
   */
  #call(run, blob) {
    let value;
    try {
      const called = this.#app.find(run.functionName);
      if (called === undefined) throw new Refused('not_found', `no function ${run.functionName}`);
      const parameters = called.checked(parametersOf(blob));
      run.startedAt = now();
      value = isThenable(parameters)
        ? this.#callChecked(run, called, parameters)
        : called.call(parameters, new RunContext(run, this.#logs));
    } catch (error) {
      this.#end(run, { error });
      return;
    }
    void this.#settle(run, value);
  }

  /**
   * Calls the function after its schema's parser, which may be asynchronous.
   *
   * @param {Run} run
   * @param {import('./functions.mjs').PublicFunction} called
   * @param {PromiseLike<import('./types.d.ts').Parameters>} checked
   */
  async #callChecked(run, called, checked) {
    const parameters = await checked;
    if (run.cancelled) throw new Cancelled();
    run.startedAt = now();
    return called.call(parameters, new RunContext(run, this.#logs));
  }

  /**
   * Waits for the function, sends its items, and ends the run.
   *
   * @param {Run} run
   * @param {unknown} returned
   */
  async #settle(run, returned) {
    try {
      const value = isThenable(returned) ? await returned : returned;
      if (value instanceof Response) {
        await this.#respond(run, value);
        return;
      }
      const source = run.over ? undefined : sourceOf(value);
      if (source === undefined) this.#end(run, { value });
      else await this.#stream(run, source);
    } catch (error) {
      this.#end(run, { error });
    }
  }

  /**
   * @param {Run} run
   * @param {import('./types.d.ts').ItemSource} source
   */
  async #stream(run, source) {
    await sendItems(run, source, this.#channel);
    this.#end(run, {});
  }

  /**
   * Ends the run with the head and the body of a Response.
   *
   * @param {Run} run
   * @param {Response} response
   */
  async #respond(run, response) {
    const head = headOf(response);
    const { body } = response;
    const items = body === null || run.over ? undefined : itemsOf(head.form, body);
    if (items !== undefined) {
      run.answers(head);
      await this.#stream(run, items);
      return;
    }
    let bytes = Buffer.alloc(0);
    if (body !== null && !run.over) {
      const pieces = piecesOf(body);
      run.stopSource = () => void pieces.stop(undefined);
      bytes = await wholeBody(pieces, this.#limits.output);
      if (run.cancelled) throw new Cancelled();
    }
    this.#end(run, { head, body: bytes });
  }

  /**
   * Sends the terminal message, after every line and item of the run.
   *
   * @param {Run} run
   * @param {{ error?: unknown, value?: unknown, head?: import('./types.d.ts').Head, body?: Buffer }} outcome
   */
  #end(run, outcome) {
    if (run.over) return;
    let { error } = outcome;
    const { head, value } = outcome;
    let failed = 'error' in outcome;
    /** @type {string | Buffer | undefined} */
    let result = outcome.body;
    let status;
    if ('value' in outcome) {
      try {
        result = this.#encoded(value);
        status = statusCode(value);
      } catch (refused) {
        error = refused;
        failed = true;
      }
    }
    const fields = failed && !run.cancelled ? errorFields(error, this.#debug) : undefined;
    run.lines?.finish();
    if (failed && hasNoFilesLeft()) this.#channel.send({ t: 'worn', why: 'it has no file descriptors left' });
    if (head !== undefined) run.answers(head);
    if (!failed) run.finish(result, status);
    else if (fields === undefined) run.finishCancelled();
    else run.fail(fields);
    run.over = true;
    this.#runs.delete(run.id);
    this.#endIfDrained();
  }

  /** @param {unknown} value */
  #encoded(value) {
    const text = encode(value);
    if (text.length > this.#limits.output / 3 && Buffer.byteLength(text) > this.#limits.output)
      throw new TooLarge(`the result is over ${this.#limits.output} bytes`);
    return text;
  }

  /**
   * Handles a rejection that nothing awaits: an error of its run, or of all runs if its run is unknown.
   *
   * @param {unknown} reason
   */
  #rejected(reason) {
    const own = currentRun.getStore();
    const failed = own === undefined ? [...this.#runs.values()] : [own];
    if (failed.every((run) => run.over)) process.stderr.write(`unhandled rejection: ${formatted(reason)}\n`);
    for (const run of failed) {
      if (run.over) continue;
      currentRun.run(run, () => {
        this.#end(run, { error: reason });
        run.abort(); // the function still runs
      });
    }
  }

  #endIfDrained() {
    if (this.#draining && this.#runs.size === 0) void this.#tearDown();
  }

  async #tearDown() {
    this.#draining = false;
    try {
      await currentRun.exit(() => this.#app.hook('teardown'));
    } catch (error) {
      process.stderr.write(`${formatted(error)}\n`);
    }
    this.#logs.finish();
    await this.#channel.finish({ t: 'bye' });
    process.exit(0);
  }

  /** Sends what waits before the process ends. */
  #exits() {
    for (const run of this.#runs.values()) run.items?.seal();
    this.#logs.finish();
    this.#channel.flush();
  }
}
