// The clock and timers of the harness. They are taken at the start, because an app may replace the global ones (fake timers of a test
// library).
const { performance, setImmediate: immediate, setTimeout: timeout } = globalThis;

/** Returns milliseconds of a steady clock. */
export const now = () => performance.now();

export { immediate, timeout };

/**
 * Resolves in the next turn of the event loop, after waiting messages of the worker were read.
 *
 * @returns {Promise<void>}
 */
export const turn = () => new Promise((resolve) => void immediate(resolve));
