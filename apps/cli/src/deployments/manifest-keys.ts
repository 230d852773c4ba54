// The keys of `[deployment]` in an app's manifest that decide what is deployed: `name`, `include` and `exclude`. The worker checks the manifest.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { Failure } from '../service/failures.ts';

/** Manifests. Keys of an earlier file win. */
export const MANIFESTS = ['app.toml', 'cerebrium.toml'] as const;

export interface DeploymentKeys {
  readonly name: string | undefined;
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

type Table = Record<string, unknown>;
const asTable = (value: unknown): Table => (typeof value === 'object' && value !== null ? (value as Table) : {});

function deploymentTable(path: string): Table {
  if (!existsSync(path)) return {};
  try {
    const sections = parse(readFileSync(path, 'utf8'));
    return { ...asTable(sections.deployment), ...asTable(asTable(sections.cerebrium).deployment) };
  } catch (error) {
    throw new Failure('usage', `${path} cannot be read: ${(error as Error).message}`);
  }
}

/** Reads the keys. @throws Failure that names the wrong key */
export function deploymentKeys(folder: string): DeploymentKeys {
  const [own, hosted] = MANIFESTS.map((name) => deploymentTable(join(folder, name)));
  const table = { ...hosted, ...own };
  const patterns = (key: 'include' | 'exclude'): string[] => {
    const value = table[key] ?? [];
    if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value;
    throw new Failure('usage', `[deployment] ${key} in ${folder} is wrong: expected a list of patterns`);
  };
  return {
    name: typeof table.name === 'string' ? table.name : undefined,
    include: patterns('include'),
    exclude: patterns('exclude'),
  };
}
