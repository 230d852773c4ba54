// Contract 6: "Try it" with live streaming. Swagger UI shows an answer when it is complete. This plugin shows each event of a stream when
// it arrives, and the wrong fields of a 422 answer.

/** The newest answer of an operation. @typedef {{title: string, lines: readonly string[], open: boolean}} Live */

/** The newest lines that the page keeps of a stream. */
const MOST_LINES = 1_000;

/** By operation. @type {Map<string, Live>} */
const answers = new Map();
/** @type {Set<() => void>} */
const listeners = new Set();

/** The operation whose request is sent next. */
let next = '';

/** @param {string} operation @param {Live | undefined} live */
function set(operation, live) {
  if (live === undefined) answers.delete(operation);
  else answers.set(operation, live);
  for (const listener of listeners) listener();
}

/** @param {string} method @param {string} path */
const nameOf = (method, path) => `${method.toLowerCase()} ${path}`;

/**
 * Makes a request of Swagger UI report its answer while it arrives.
 *
 * @template Request
 * @param {Request} request
 */
export function liveRequest(request) {
  const operation = next;
  return Object.assign(/** @type {object} */ (request), {
    /** @param {string} url @param {RequestInit} init */
    userFetch: async (url, init) => {
      set(operation, undefined);
      const answer = await fetch(url, init);
      const type = answer.headers.get('content-type') ?? '';
      if (answer.status === 422) void showFields(operation, answer.clone());
      if (!type.startsWith('text/event-stream') || answer.body === null) return answer;
      const [live, whole] = answer.body.tee();
      void showEvents(operation, live);
      return new Response(whole, answer);
    },
  });
}

/** @param {string} operation @param {Response} answer */
async function showFields(operation, answer) {
  const { error } = await answer.json();
  const lines = (error.details ?? []).map(
    (/** @type {{loc: (string | number)[], msg: string}} */ { loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`,
  );
  if (lines.length > 0) set(operation, { title: 'Wrong parameters', lines, open: false });
}

/** @param {string} operation @param {ReadableStream<Uint8Array>} body */
async function showEvents(operation, body) {
  /** @type {string[]} */
  let lines = [];
  let count = 0;
  let rest = '';
  const show = (/** @type {boolean} */ open) =>
    set(operation, {
      title: `Stream: ${count} event${count === 1 ? '' : 's'}${open ? '' : ', complete'}`,
      lines,
      open,
    });
  show(true);
  const reader = body.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const events = (rest + part.value).split('\n\n');
      rest = events.pop() ?? '';
      const arrived = events.map(dataOf).filter((each) => each !== undefined);
      count += arrived.length;
      lines = [...lines, ...arrived].slice(-MOST_LINES);
      show(true);
    }
  } catch (error) {
    lines = [...lines, `The stream broke: ${error}`];
  }
  show(false);
}

/** Returns the name and the data of an event. Comments have no data. @param {string} event */
function dataOf(event) {
  const fields = event.split('\n').filter((line) => line.startsWith('event:') || line.startsWith('data:'));
  return fields.length === 0 ? undefined : fields.map((line) => line.replace(/^(data|event): ?/, '')).join('\n');
}

/** The plugin of Swagger UI. @param {any} system */
export function livePlugin(system) {
  const { React } = system;
  const { createElement, useSyncExternalStore } = React;

  /** @param {{operation: string}} props */
  function LiveAnswer({ operation }) {
    /** @type {Live | undefined} */
    const live = useSyncExternalStore(
      (/** @type {() => void} */ listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      () => answers.get(operation),
    );
    if (live === undefined) return null;
    return createElement(
      'section',
      { className: 'live', 'aria-live': 'polite', 'data-open': String(live.open) },
      createElement('h4', null, live.title),
      createElement('pre', null, live.lines.join('\n')),
    );
  }

  return {
    statePlugins: {
      spec: {
        wrapActions: {
          executeRequest: (/** @type {any} */ original) => (/** @type {any} */ request) => {
            next = nameOf(request.method, request.pathName);
            return original(request);
          },
        },
      },
    },
    wrapComponents: {
      responses: (/** @type {any} */ Original) => (/** @type {any} */ props) =>
        createElement(
          React.Fragment,
          null,
          createElement(LiveAnswer, { operation: nameOf(props.method, props.path) }),
          createElement(Original, props),
        ),
    },
  };
}
