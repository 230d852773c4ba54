// Contract 6, "Tokens": the token of this tab. It lives in session storage, never in local storage and never in a URL of a request.
import { computed, signal } from '@preact/signals';

const KEY = 'inference-proxy.token';

/** The claims that the console reads. The gateway checks the token, so the console does not verify the signature. */
export interface Claims {
  readonly sub?: string;
  readonly exp?: number;
  readonly project_id?: string | readonly string[];
  readonly scope?: readonly string[] | string;
}

export const token = signal<string | undefined>(undefined);

/** Why the page asks for a token again. */
export const refusal = signal<string | undefined>(undefined);

/** Returns the claims of a token, or undefined if the text is not a JWT. */
export function claimsOf(text: string): Claims | undefined {
  try {
    const [, payload = ''] = text.split('.');
    const bytes = Uint8Array.from(atob(payload.replaceAll('-', '+').replaceAll('_', '/')), (one) => one.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof claims === 'object' && claims !== null ? claims : undefined;
  } catch {
    return undefined;
  }
}

/** The claims of the present token. */
export const claims = computed(() => (token.value === undefined ? undefined : claimsOf(token.value)));

/** The projects of the token. An empty list: the token is for all projects. */
export const projects = computed((): readonly string[] => {
  const given = claims.value?.project_id ?? [];
  const names = typeof given === 'string' ? [given] : given;
  return names.includes('*') ? [] : names;
});

const DEFAULT_SCOPES = ['call', 'runs:read', 'runs:write'];

/** Returns whether the token has a scope. Buttons without their scope are absent. */
export function may(scope: string): boolean {
  const given = claims.value?.scope ?? DEFAULT_SCOPES;
  return (typeof given === 'string' ? given.split(' ') : given).includes(scope);
}

/** Keeps a token for this tab. */
export function signIn(text: string): void {
  sessionStorage.setItem(KEY, text);
  refusal.value = undefined;
  token.value = text;
}

/** Forgets the token. @param reason shown above the form for a new token */
export function signOut(reason?: string): void {
  sessionStorage.removeItem(KEY);
  refusal.value = reason;
  token.value = undefined;
}

/** Moves a token from `#token=…` into session storage and removes it from the address and the history entry. */
export function takeToken(): void {
  const fragment = new URLSearchParams(location.hash.replace(/^#/, ''));
  const given = fragment.get('token');
  if (given === null) {
    token.value = sessionStorage.getItem(KEY) ?? undefined;
    return;
  }
  const project = fragment.get('project');
  history.replaceState(
    null,
    '',
    location.pathname + location.search + (project ? `#/${encodeURIComponent(project)}` : ''),
  );
  signIn(given);
}
