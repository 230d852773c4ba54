// Contract 7, `GET /audit`: records each change with its author and address. The lines are in the gateway's log and in the store.
import type { IncomingMessage } from 'node:http';
import type { Network } from '@inference-proxy/egress';
import type { Logger } from '@inference-proxy/platform';
import type { AuditEntry, VersionStore } from '@inference-proxy/store';
import { callerAddress } from '../http/caller-address.ts';
import { refused } from '../http/request-head.ts';

export type AuditAction = 'version.deploy' | 'version.activate' | 'app.delete' | 'secret.set' | 'secret.unset';

const CURSOR = /^\d{1,6}$/;

export class Audit {
  readonly #store: VersionStore;
  readonly #logger: Logger;
  readonly #trustedProxies: readonly Network[];

  constructor(store: VersionStore, logger: Logger, trustedProxies: readonly Network[]) {
    this.#store = store;
    this.#logger = logger;
    this.#trustedProxies = trustedProxies;
  }

  /** Records a change after it was made. Never rejects, because the change must be answered: the gateway's log has the line in any case. */
  async record(
    request: IncomingMessage,
    { project, sub, action, target }: { project: string; sub: string | undefined; action: AuditAction; target: string },
  ): Promise<void> {
    const entry: AuditEntry = {
      time: new Date().toISOString(),
      ...(sub !== undefined && { sub }),
      action,
      target,
      address: callerAddress(request, this.#trustedProxies),
    };
    logAudit(this.#logger, project, entry);
    try {
      await this.#store.audit(project, entry);
    } catch (err) {
      this.#logger.error({ err, project, ...entry }, 'the audit entry was not stored; only this log has it');
    }
  }

  /**
   * Returns the answer of `GET /v4/{project}/audit`.
   *
   * @throws ServiceError `invalid_request` for a malformed cursor, `unavailable`
   */
  async page(project: string, limit: number, cursor = '0'): Promise<object> {
    if (!CURSOR.test(cursor)) throw refused('cursor', 'does not belong to this list');
    const from = Number(cursor);
    const entries = await this.#store.audited(project, from, limit + 1);
    const more = entries.length > limit;
    return { entries: entries.slice(0, limit), ...(more && { cursor: String(from + limit) }) };
  }
}

/** Logs an entry of the audit log. The field `audit` marks the line. */
export function logAudit(logger: Pick<Logger, 'info'>, project: string, entry: AuditEntry): void {
  logger.info({ audit: true, project, ...entry }, 'change of an app');
}
