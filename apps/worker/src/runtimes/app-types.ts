// Contract 1, "Parameters and types": reads the types of a TypeScript app in a process of its own. Without types, the app is untyped.
import { execFile } from 'node:child_process';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** The path is valid from `src/runtimes` and from `dist/runtimes`. */
const READER = fileURLToPath(new URL('../../harness/types/main.mjs', import.meta.url));
const READ_MS = 60_000;
const HEAP_MIB = 512;
const MOST_BYTES = 4 * 1024 * 1024;
/** Versions whose types are kept. A version's name is a hash of its files. */
const KEPT = 64;

const TYPESCRIPT = new Set(['.ts', '.mts', '.cts', '.tsx']);

/** What the process of the app receives with `init`: the types of its functions, or the reason why there are none. */
export type AppTypes = { readonly functions: Readonly<Record<string, object>> } | { readonly untyped: string };

/** The latest results, oldest first. */
const kept = new Map<string, Promise<AppTypes>>();

/**
 * Returns the types of an app, or undefined if its entry file is JavaScript. Never rejects.
 *
 * @param folder absolute path @param entry the module's file in this folder @param version a hash of the app's files
 */
export async function typesOf(folder: string, entry: string, version: string): Promise<AppTypes | undefined> {
  if (!TYPESCRIPT.has(extname(entry))) return undefined;
  const key = JSON.stringify([folder, entry, version]);
  const types = kept.get(key) ?? read(folder, entry);
  kept.delete(key);
  kept.set(key, types);
  for (const oldest of kept.keys()) if (kept.size > KEPT) kept.delete(oldest);
  return types;
}

async function read(folder: string, entry: string): Promise<AppTypes> {
  try {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [`--max-old-space-size=${HEAP_MIB}`, READER, folder, entry],
      { cwd: folder, env: {}, timeout: READ_MS, killSignal: 'SIGKILL', maxBuffer: MOST_BYTES },
    );
    return { functions: JSON.parse(stdout) as Record<string, object> };
  } catch (error) {
    return { untyped: `its types cannot be read: ${reasonOf(error)}` };
  }
}

function reasonOf(error: unknown): string {
  const { killed, stderr, message } = error as Error & { killed?: boolean; stderr?: string };
  if (killed) return `the compiler needed more than ${READ_MS / 1_000} s, or its output is too large`;
  return /^\w*Error: (.*)$/m.exec(stderr ?? '')?.[1] ?? message.split('\n', 1)[0] ?? 'the compiler failed';
}
