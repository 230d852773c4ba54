// Contract 7: parses the text of a manifest into sections: `app.toml`, merged over the hosted product's `cerebrium.toml`.
import { parse } from 'smol-toml';

/** Reports an unusable manifest. The message names the key and the reason, for the app's author. */
export class ManifestError extends Error {
  override readonly name = 'ManifestError';
}

/**
 * Tables by section name, without the prefix of the hosted product. `runtime.python` and other runtimes are separate sections, and so are
 * the tables of `dependencies`. `runtime` has only the keys that no single runtime has.
 */
export type Sections = Map<string, unknown>;

const RUNTIME = 'runtime.';
const DEPENDENCIES = 'dependencies.';
/** Keys of [runtime.custom] that start a server. An app has only one of these keys. */
const WAYS_TO_START = ['entrypoint', 'url', 'dockerfile_path'];

export const asTable = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
    ? (value as Record<string, unknown>)
    : undefined;

/** Parses TOML into sections. @throws ManifestError if the text is not TOML */
export function sectionsOf(text: string): Sections {
  let root: Record<string, unknown>;
  try {
    root = parse(text);
  } catch (error) {
    throw new ManifestError(`not TOML: ${error instanceof Error ? error.message : String(error)}`);
  }
  const { cerebrium, ...plain } = root;
  return merged(flat(asTable(cerebrium) ?? {}), flat(plain));
}

function flat(tables: Record<string, unknown>): Sections {
  const found: Sections = new Map();
  for (const [name, value] of Object.entries(tables)) {
    const parts = ['runtime', 'dependencies'].includes(name) ? asTable(value) : undefined;
    if (!parts) found.set(name, value);
    else
      for (const [key, part] of Object.entries(parts))
        if (name === 'dependencies') found.set(DEPENDENCIES + key, part);
        else if (key !== 'validate') found.set(RUNTIME + key, part);
        else found.set('runtime', { validate: part });
  }
  return found;
}

/**
 * Merges sections key by key; keys of `over` win. A runtime in `over` replaces every other runtime, and a way to start a server replaces
 * every other way, because an app has one of each.
 */
export function merged(under: Sections, over: Sections): Sections {
  const hasRuntime = [...over.keys()].some((name) => name.startsWith(RUNTIME));
  const result: Sections = new Map();
  for (const [name, value] of under) {
    if (!name.startsWith(RUNTIME) || !hasRuntime || over.has(name)) result.set(name, value);
  }
  for (const [name, value] of over) {
    const [below, above] = [asTable(result.get(name)), asTable(value)];
    result.set(name, below && above ? { ...kept(below, above), ...above } : value);
  }
  return result;
}

/** Returns the keys of `below` that still have a meaning. */
function kept(below: Record<string, unknown>, above: Record<string, unknown>): Record<string, unknown> {
  if (!WAYS_TO_START.some((key) => key in above)) return below;
  const dropped = [...WAYS_TO_START, ...('url' in above ? ['port'] : [])];
  return Object.fromEntries(Object.entries(below).filter(([key]) => !dropped.includes(key)));
}
