// Contract 6, "Settings": reads settings from the environment, checks all of them at start, and builds the text of `--help` from the same schema.
import { z } from 'zod';

/** A zod object for each service: a key for each environment variable, with `.describe(...)` for `--help`. */
export type SettingsSchema = z.ZodObject;

/** Lists the missing and wrong settings, a line for each, without the values of secrets. */
export class SettingsError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`wrong settings:\n${problems.map((line) => `  ${line}`).join('\n')}`);
    this.name = 'SettingsError';
    this.problems = problems;
  }
}

/** A service's settings as a class, which is schema, type and Nest's injection token. */
export interface SettingsClass<Schema extends SettingsSchema> {
  readonly schema: Schema;
  new (values: z.output<Schema>): z.output<Schema>;
}

/**
 * Returns the base class of a service's settings:
 * `class GatewaySettings extends settingsOf(z.object({ ...commonSettings, PORT: port().prefault('8080').describe('…') })) {}`
 */
export function settingsOf<Schema extends SettingsSchema>(schema: Schema): SettingsClass<Schema> {
  class Settings {
    static readonly schema = schema;

    constructor(values: z.output<Schema>) {
      Object.assign(this, values);
    }
  }
  return Settings as unknown as SettingsClass<Schema>;
}

interface Wrapper {
  readonly type: string;
  readonly innerType?: z.core.$ZodType;
  readonly in?: z.core.$ZodType;
  readonly defaultValue?: unknown;
}

/** The properties of a setting, collected from all its wrappers (`optional`, `prefault`, …). */
interface Described {
  readonly meaning: string;
  readonly secret: boolean;
  readonly optional: boolean;
  readonly fallback: unknown;
}

function describe(schema: z.core.$ZodType): Described {
  const meta = z.globalRegistry.get(schema) ?? {};
  const definition = schema._zod.def as Wrapper;
  const within = definition.innerType ?? definition.in;
  const inner = within ? describe(within) : { meaning: '', secret: false, optional: false, fallback: undefined };
  return {
    meaning: meta.description ?? inner.meaning,
    secret: meta.secret === true || inner.secret,
    optional: definition.type === 'optional' || inner.optional,
    fallback: definition.defaultValue ?? inner.fallback,
  };
}

/** Returns the variables that have a value. An empty variable counts as not set, because compose files and shells cannot unset it. */
function given(schema: SettingsSchema, env: NodeJS.ProcessEnv): Record<string, string> {
  const values: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    const value = env[name]?.trim();
    if (value) values[name] = value;
  }
  return values;
}

function problem(issue: z.core.$ZodIssue, schema: SettingsSchema, values: Record<string, string>): string {
  const name = String(issue.path[0] ?? '');
  const piece = schema.shape[name];
  if (!piece) return issue.message;
  const value = values[name];
  if (value === undefined) return `${name} is missing: ${issue.message}`;
  return `${name} is wrong: ${issue.message}${describe(piece).secret ? '' : `, got ${JSON.stringify(value)}`}`;
}

/**
 * Returns the checked settings of `env`.
 *
 * @throws SettingsError that names every missing or wrong setting
 */
export function readSettings<Schema extends SettingsSchema>(
  schema: Schema,
  env: NodeJS.ProcessEnv = process.env,
): z.output<Schema> {
  const values = given(schema, env);
  const parsed = schema.safeParse(values);
  if (parsed.success) return parsed.data;
  throw new SettingsError(parsed.error.issues.map((issue) => problem(issue, schema, values)));
}

/** Returns the text of `--help`: every setting with its default and its meaning. */
export function helpText(name: string, about: string, schema: SettingsSchema): string {
  const rows = Object.entries(schema.shape).map(([setting, piece]) => {
    const { meaning, optional, fallback } = describe(piece);
    const otherwise = fallback === undefined ? (optional ? 'not set' : 'required') : `default ${String(fallback)}`;
    return { setting, text: `${meaning}${meaning && ' '}(${otherwise})` };
  });
  const width = Math.max(...rows.map((row) => row.setting.length));
  const lines = rows.map((row) => `  ${row.setting.padEnd(width)}  ${row.text}`);
  return `${name}: ${about}\n\n--check checks the settings and starts nothing.\n\nSettings, from the environment:\n${lines.join('\n')}\n`;
}
