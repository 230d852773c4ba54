// Contract 5: reads queries, and defines the parameters that all lists share.
import { ServiceError } from '@inference-proxy/contracts';
import { z } from 'zod';

const LONGEST_LIMIT = 100;
/** A cursor is short, and a filter that is longer than any name finds nothing. */
const LONGEST_VALUE = 512;

/** Returns the text after the `?`, undecoded. */
export function queryOf(url: string): string {
  const mark = url.indexOf('?');
  return mark === -1 ? '' : url.slice(mark + 1);
}

export const filterWord = z.string().min(1, 'is empty').max(LONGEST_VALUE, 'is too long').optional();

/** Parameters of every list: the most entries of a page, and where the page begins. */
export const paging = {
  limit: z
    .string()
    .prefault('50')
    .refine((text) => /^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= LONGEST_LIMIT, {
      error: `must be a whole number from 1 to ${LONGEST_LIMIT}`,
    })
    .transform(Number),
  cursor: filterWord,
};

/**
 * Reads the parameters of a query. Each parameter may be given once.
 *
 * @param unknown whether parameters of other names are ignored or refused
 * @throws ServiceError `invalid_request` that names the wrong parameter
 */
export function readQuery<S extends z.ZodObject>(
  schema: S,
  query: string,
  unknown: 'ignored' | 'refused',
): z.output<S> {
  const parameters = new URLSearchParams(query);
  const names = Object.keys(schema.shape);
  const doubled = names.find((name) => parameters.getAll(name).length > 1);
  if (doubled !== undefined) throw new ServiceError('invalid_request', `\`${doubled}\` is given more than once.`);
  const stray = unknown === 'refused' ? [...parameters.keys()].find((name) => !names.includes(name)) : undefined;
  if (stray !== undefined) throw new ServiceError('invalid_request', `\`${stray}\` is not known here.`);
  const { success, data, error } = schema.safeParse(Object.fromEntries(parameters));
  if (success) return data;
  const [issue] = error.issues;
  throw new ServiceError('invalid_request', `\`${issue?.path.join('.')}\` ${issue?.message}.`);
}
