// Contract 6, `traceparent`: adds the OpenTelemetry spans of a function to its call's trace, without changes to the app.

/** The place where OpenTelemetry's API for JavaScript registers itself. */
const API = Symbol.for('opentelemetry.js.api.1');

const getter = {
  /** @param {Record<string, string>} carrier */
  keys: (carrier) => Object.keys(carrier),
  /**
   * @param {Record<string, string>} carrier
   * @param {string} key
   */
  get: (carrier, key) => carrier[key],
};

/**
 * Calls `work` in the call's trace if the app has registered OpenTelemetry.
 *
 * @param {string | undefined} traceparent
 * @param {() => void} work must not throw
 */
export function inTrace(traceparent, work) {
  const api = /** @type {any} */ (globalThis)[API];
  if (traceparent === undefined || api?.propagation === undefined || api.context === undefined) {
    work();
    return;
  }
  let begun = false;
  const once = () => {
    begun = true;
    work();
  };
  try {
    const context = api.propagation.extract(api.context.active(), { traceparent }, getter);
    api.context.with(context, once);
  } catch (error) {
    // A fault in the app's version of OpenTelemetry must not fail the run.
    process.stderr.write(`the function runs without the call's trace, because OpenTelemetry failed: ${error}\n`);
    if (!begun) work();
  }
}
