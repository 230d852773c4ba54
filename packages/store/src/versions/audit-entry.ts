// Contract 7, `GET /audit`: an entry of the audit log.

/** An entry of the audit log. */
export interface AuditEntry {
  /** ISO 8601. */
  readonly time: string;
  /** `sub` of the token; `service` for an undoing by the service. */
  readonly sub?: string;
  readonly action: string;
  readonly target: string;
  /** Address of the caller. Empty for the service. */
  readonly address: string;
  /** Why the service has undone a roll-out. */
  readonly reason?: string;
}

export const MOST_AUDIT_ENTRIES = 10_000;

/** Reads an entry of the list. Entries of the scripts have the time as a number (ms). */
export function auditEntryOf(text: string): AuditEntry {
  const entry = JSON.parse(text) as AuditEntry & { readonly time: string | number };
  return { ...entry, time: typeof entry.time === 'number' ? new Date(entry.time).toISOString() : entry.time };
}
