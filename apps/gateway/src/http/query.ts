// Contract 5: reads the query of a route whose parameters are described by a schema.
import { z } from 'zod';
import { Query, refused } from './request-head.ts';

/**
 * Reads the parameters of a query. Each parameter may be given once.
 *
 * @param unknown whether parameters of other names are ignored or refused
 * @throws ServiceError `invalid_request` that names the wrong parameter
 */
export function readQuery<S extends z.ZodObject>(schema: S, query: Query, unknown: 'ignored' | 'refused'): z.output<S> {
  const names = Object.keys(schema.shape);
  const values = Object.fromEntries(names.map((name) => [name, query.once(name)]));
  const stray = unknown === 'refused' ? query.names().find((name) => !names.includes(name)) : undefined;
  if (stray !== undefined) throw refused(stray, 'is not known here');
  const { success, data, error } = schema.safeParse(values);
  if (success) return data;
  const [issue] = error.issues;
  throw refused(String(issue?.path.join('.')), String(issue?.message));
}
