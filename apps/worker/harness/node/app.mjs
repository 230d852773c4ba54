// Contract 1: an app's module and its public functions.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PublicFunction } from './functions.mjs';

const PUBLIC_NAME = /^[A-Za-z][A-Za-z0-9_]{0,126}$/;
const HOOKS = ['setup', 'teardown'];
/** The name of a default export that is a function. */
const DEFAULT_NAME = 'run';

/** @typedef {import('./types.d.ts').AppFunction} AppFunction */

export class App {
  #entry;
  #validates;
  #types;
  /** @type {Map<string, PublicFunction>} */
  #functions = new Map();
  /** What setup() and teardown() are properties of. @type {Record<string, unknown>} */
  #hooks = {};

  /**
   * @param {string} folder absolute path
   * @param {string} entry the module's file in this folder
   * @param {boolean} validates `false`: the values of parameters are not checked
   * @param {import('./types.d.ts').AppTypes} [types]
   */
  constructor(folder, entry, validates, types) {
    this.#entry = join(folder, entry);
    this.#validates = validates;
    this.#types = types;
  }

  /** Imports the entry file. Rejects with what the file throws. */
  async load() {
    if (this.#types?.untyped !== undefined) process.stderr.write(`the functions are untyped: ${this.#types.untyped}\n`);
    process.argv = [process.execPath, this.#entry];
    const module = /** @type {Record<string, unknown>} */ (await import(pathToFileURL(this.#entry).href));
    const docs = docsOf(await readFile(this.#entry, 'utf8'));
    const { default: main, ...named } = module;
    const properties = typeof main === 'object' && main !== null ? /** @type {Record<string, unknown>} */ (main) : {};
    this.#hooks = { ...properties, ...named };
    if (typeof main === 'function') this.#add(DEFAULT_NAME, main, undefined, docs.get(main.name));
    for (const [name, value] of Object.entries(properties)) this.#add(name, value, properties, docs.get(name));
    for (const [name, value] of Object.entries(named)) this.#add(name, value, undefined, docs.get(name));
  }

  /**
   * Calls setup() or teardown(). Returns its result, or undefined if the app has no such hook.
   *
   * @param {'setup' | 'teardown'} name
   */
  hook(name) {
    const hook = this.#hooks[name];
    return typeof hook === 'function' ? hook() : undefined;
  }

  /** Returns the descriptions of the public functions in `ready`. */
  describe() {
    return [...this.#functions.values()].map((one) => one.describe());
  }

  /** @param {string} name */
  find(name) {
    return this.#functions.get(name);
  }

  /**
   * @param {string} name
   * @param {unknown} value
   * @param {unknown} owner
   * @param {string | undefined} doc
   */
  #add(name, value, owner, doc) {
    if (typeof value !== 'function' || !PUBLIC_NAME.test(name) || HOOKS.includes(name) || isClass(value)) return;
    const types = this.#types?.functions?.[name] ?? this.#types;
    this.#functions.set(
      name,
      new PublicFunction(name, /** @type {AppFunction} */ (value), owner, doc, this.#validates, types),
    );
  }
}

/** @param {Function} value */
const isClass = (value) => /^class\b/.test(Function.prototype.toString.call(value));

const DECLARATION = /\s*export\s+(?:default\s+)?(?:async\s+)?(?:function|const|let)[\s*]+([A-Za-z]\w{0,127})/y;

/**
 * Returns the first line of the doc comment above each exported function, by the function's name.
 *
 * @param {string} source
 */
function docsOf(source) {
  /** @type {Map<string, string>} */
  const docs = new Map();
  for (let start = source.indexOf('/**'); start !== -1; start = source.indexOf('/**', start + 3)) {
    const end = source.indexOf('*/', start + 3);
    if (end === -1) break;
    DECLARATION.lastIndex = end + 2;
    const name = DECLARATION.exec(source)?.[1];
    const doc = firstLine(source.slice(start + 3, end));
    if (name !== undefined && doc !== undefined) docs.set(name, doc);
  }
  return docs;
}

/** @param {string} comment */
const firstLine = (comment) =>
  comment
    .split('\n')
    .map((line) => line.trim().replace(/^\*/, '').trim())
    .find((line) => line !== '' && !line.startsWith('@'));
