// Contract 5, "Logs: `GET /runs/{run_id}/logs`": the lines that a run printed and that are not sent yet. The newest are kept.

/** A longer line is cut into several lines. */
const LINE_LIMIT = 8 * 1024;
/** The cost of a line beside its characters, so that a flood of empty lines is bounded too. */
const LINE_COST = 16;
/** The lines of one run share a frame up to this size. */
const FRAME_SIZE = 64 * 1024;
/** The start of the list is cut off after so many removed lines. */
const CUT_AFTER = 4096;

/** @typedef {'o' | 'e'} Stream */

export class Lines {
  #runId;
  #channel;
  #limit;
  /** Each line with its stream and time. @type {string[]} */
  #lines = [];
  /** The index of the oldest waiting line. */
  #first = 0;
  /** The size of all waiting lines. */
  #size = 0;
  #dropped = 0;
  /** Output without a newline yet. @type {Record<Stream, string>} */
  #partial = { o: '', e: '' };

  /**
   * @param {string | undefined} runId undefined for lines of no run
   * @param {import('./channel.mjs').Channel} channel
   * @param {number} limit bytes of waiting lines
   */
  constructor(runId, channel, limit) {
    this.#runId = runId;
    this.#channel = channel;
    this.#limit = limit;
  }

  /** Whether lines wait. */
  get waits() {
    return this.#first < this.#lines.length;
  }

  /**
   * Adds text. Returns whether lines wait.
   *
   * @param {Stream} stream
   * @param {string} text
   */
  write(stream, text) {
    let start = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      this.#add(stream, this.#partial[stream] + text.slice(start, end));
      this.#partial[stream] = '';
      start = end + 1;
    }
    const rest = this.#partial[stream] + text.slice(start);
    const whole = rest.length > LINE_LIMIT ? Math.floor((rest.length - 1) / LINE_LIMIT) * LINE_LIMIT : 0;
    if (whole > 0) this.#add(stream, rest.slice(0, whole));
    this.#partial[stream] = rest.slice(whole);
    return this.waits;
  }

  /** Sends one frame of waiting lines. */
  seal() {
    if (!this.waits) return;
    let size = 0;
    let end = this.#first;
    for (; end < this.#lines.length && size < FRAME_SIZE; end++) size += cost(/** @type {string} */ (this.#lines[end]));
    const blob = this.#lines.slice(this.#first, end).join('\n');
    this.#channel.send({ t: 'log', r: this.#runId, n: end - this.#first, cut: this.#dropped }, blob);
    this.#dropped = 0;
    this.#size -= size;
    this.#removeUpTo(end);
  }

  /** Sends every line, and unfinished lines. */
  finish() {
    for (const stream of /** @type {const} */ (['o', 'e'])) {
      if (this.#partial[stream] !== '') this.#add(stream, this.#partial[stream]);
      this.#partial[stream] = '';
    }
    while (this.waits) this.seal();
  }

  /**
   * @param {Stream} stream
   * @param {string} text
   */
  #add(stream, text) {
    const start = `${stream}${Date.now()} `;
    let at = 0;
    do {
      const line = start + text.slice(at, at + LINE_LIMIT);
      this.#lines.push(line);
      this.#size += cost(line);
      at += LINE_LIMIT;
    } while (at < text.length);
    let first = this.#first;
    for (; this.#size > this.#limit && first < this.#lines.length - 1; first++) {
      this.#size -= cost(/** @type {string} */ (this.#lines[first]));
      this.#lines[first] = '';
      this.#dropped++;
    }
    this.#removeUpTo(first);
  }

  /** @param {number} end */
  #removeUpTo(end) {
    if (end === this.#lines.length || end > CUT_AFTER) {
      this.#lines.splice(0, end);
      this.#first = 0;
    } else this.#first = end;
  }
}

/** @param {string} line */
const cost = (line) => line.length + LINE_COST;
