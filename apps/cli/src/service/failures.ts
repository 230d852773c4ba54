// The failures of a command, and the exit code of each.

/** The exit codes of the program. `--help` and docs/cli.md print this table. */
export const EXIT_CODES = {
  done: { code: 0, when: 'the command succeeded' },
  failed: { code: 1, when: 'the run failed, the service rejected the request, or the check found a problem' },
  usage: { code: 2, when: 'an option or an argument is wrong or missing' },
  denied: { code: 3, when: 'the token is missing, wrong, expired or lacks a scope (401, 403)' },
  notFound: { code: 4, when: 'the project, app, function, run or version does not exist (404)' },
  unavailable: {
    code: 5,
    when: 'the service cannot be reached or asks for a later try (429, 503, a broken connection)',
  },
  interrupted: { code: 130, when: 'Ctrl-C' },
} as const;

export type Exit = keyof typeof EXIT_CODES;

/** The error object of contract 2, as far as this program reads it. */
export interface ErrorBody {
  readonly code: string;
  readonly message: string;
  readonly retryable?: boolean;
  readonly [field: string]: unknown;
}

/** A command that failed. The program prints the message, or with `--json` the body, and exits. */
export class Failure extends Error {
  readonly exit: Exit;
  /** The answer of the service, or `{"error": {"code", "message"}}` of this program. */
  readonly body: { readonly error: ErrorBody; readonly [field: string]: unknown };

  constructor(exit: Exit, message: string, body?: Failure['body']) {
    super(message);
    this.name = 'Failure';
    this.exit = exit;
    this.body = body ?? { error: { code: exit, message } };
  }
}

/** The states of a run that ended without success. An answer with such a state is about the run, not about the request. */
const ENDED_BADLY = new Set(['failed', 'cancelled', 'timed_out', 'expired']);

function exitOf(status: number, body: Failure['body']): Exit {
  if (ENDED_BADLY.has(String(body.status))) return 'failed';
  if (status === 401 || status === 403) return 'denied';
  if (status === 404) return 'notFound';
  if (status === 429 || status === 503) return 'unavailable';
  return 'failed';
}

function parsed(text: string): Failure['body'] | undefined {
  try {
    const body = JSON.parse(text) as { error?: { code?: unknown; message?: unknown } } | null;
    return typeof body?.error?.code === 'string' ? (body as Failure['body']) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the failure of an answer with an error status. A proxy may have answered in another form. */
export function failureOf(status: number, text: string): Failure {
  const body = parsed(text) ?? {
    error: { code: 'unexpected_answer', message: `the service answered ${status}: ${text.slice(0, 300).trim()}` },
  };
  const { code, message, details } = body.error;
  const run = typeof body.run_id === 'string' ? ` (run ${body.run_id})` : '';
  const places = Array.isArray(details) && details.length > 0 ? `\n${details.map(detailLine).join('\n')}` : '';
  return new Failure(exitOf(status, body), `${code}: ${message}${run}${places}`, body);
}

const detailLine = (detail: { loc?: unknown[]; msg?: string }): string =>
  `  ${(detail.loc ?? []).join('.')}: ${detail.msg ?? ''}`;
