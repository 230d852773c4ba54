// Contract 6: the page of `GET /docs`. It shows the document of the service or of an app, and calls with the token that a person pastes.
// The token stays in the memory of this page.
import { livePlugin, liveRequest } from '/docs/live.js';

/** The choice of the document of the service. */
const SERVICE = '';

/** @type {<Kind extends HTMLElement>(id: string, kind: new () => Kind) => Kind} */
const element = (id, kind) => {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
};

const token = element('token', HTMLInputElement);
const project = element('project', HTMLInputElement);
const projects = element('projects', HTMLDataListElement);
const app = element('app', HTMLSelectElement);
const status = element('status', HTMLOutputElement);

const authorization = () => ({ authorization: `Bearer ${token.value.trim()}` });

/** @param {string} text @param {string} [value] */
const option = (text, value = text) => new Option(text, value);

/** Returns the projects of the token's claims. The gateway checks the token; the page only reads its claims. */
function projectsOfToken() {
  try {
    const [, claims = ''] = token.value.trim().split('.');
    const bytes = Uint8Array.from(atob(claims.replaceAll('-', '+').replaceAll('_', '/')), (each) => each.charCodeAt(0));
    const { project_id: named } = JSON.parse(new TextDecoder().decode(bytes));
    return [named].flat().filter((each) => typeof each === 'string' && each !== '*');
  } catch {
    return [];
  }
}

/**
 * Returns the JSON of an answer. Shows the error of another answer.
 *
 * @param {string} path
 */
async function read(path) {
  const answer = await fetch(path, { headers: token.value === '' ? {} : authorization() });
  const body = await answer.json();
  if (answer.ok) return body;
  throw new Error(`${answer.status}: ${body.error?.message ?? answer.statusText}`);
}

let last = Promise.resolve();

/**
 * Shows the result of the newest choice. The choices take turns, because an earlier answer may arrive later.
 *
 * @param {() => Promise<void>} work
 */
function shown(work) {
  last = last.then(async () => {
    status.value = 'Loading…';
    try {
      await work();
      status.value = '';
    } catch (error) {
      status.value = error instanceof Error ? error.message : String(error);
    }
  });
}

async function showDocument() {
  const path = app.value === SERVICE ? '/openapi.json' : `/openapi/${project.value}/${app.value}.json`;
  const spec = await read(path);
  /** @type {any} */ (globalThis).SwaggerUIBundle({
    spec,
    dom_id: '#document',
    plugins: [livePlugin],
    tryItOutEnabled: true,
    validatorUrl: null,
    deepLinking: false,
    /** @param {{headers: Record<string, string>}} request */
    requestInterceptor: (request) => {
      Object.assign(request.headers, token.value === '' ? {} : { Authorization: authorization().authorization });
      return liveRequest(request);
    },
  });
}

async function listApps() {
  app.replaceChildren(option('The service', SERVICE));
  try {
    if (project.value === '' || token.value === '') return;
    const { apps } = await read(`/v4/${encodeURIComponent(project.value)}`);
    app.append(...apps.map((/** @type {{app: string}} */ each) => option(each.app)));
    app.selectedIndex = apps.length === 0 ? 0 : 1;
  } finally {
    await showDocument();
  }
}

token.addEventListener('change', () => {
  const named = projectsOfToken();
  projects.replaceChildren(...named.map((each) => option(each)));
  if (!named.includes(project.value) && named.length > 0) project.value = named[0];
  shown(listApps);
});
project.addEventListener('change', () => shown(listApps));
app.addEventListener('change', () => shown(showDocument));
shown(listApps);
