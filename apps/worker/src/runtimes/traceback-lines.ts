// Contract 2, "Errors": finds the lines of a Python traceback among the lines on stderr.

const FIRST = 'Traceback (most recent call last):';
/** Python prints one of these between the tracebacks of chained exceptions, with a blank line before and after. */
const BETWEEN = [
  'During handling of the above exception, another exception occurred:',
  'The above exception was the direct cause of the following exception:',
];

/** Follows the lines of one stream. */
export class TracebackLines {
  /** The last lines were frames: the exception's own line follows. */
  #inFrames = false;
  /** The last line ended a traceback: a chained exception may follow after a blank line. */
  #maybeChained = false;

  /** Returns whether this line, which follows the lines before, belongs to a traceback. */
  has(line: string): boolean {
    // The traceback of an exception group has a margin of `+` and `|`.
    const text = line.replace(/^[ |+-]{1,64}/, '');
    if (text === FIRST || text === `Exception Group ${FIRST}`) return this.#become(true, false);
    if (this.#inFrames) return line.startsWith(' ') || this.#become(false, true);
    if (!this.#maybeChained) return false;
    if (text === '' || BETWEEN.includes(text)) return true;
    this.#maybeChained = false;
    return false;
  }

  #become(inFrames: boolean, maybeChained: boolean): true {
    this.#inFrames = inFrames;
    this.#maybeChained = maybeChained;
    return true;
  }
}
