// Contract 1, "Body": reads `multipart/form-data` and `application/x-www-form-urlencoded`. docs/decisions/0055-forms-become-parameters.md
import { isUtf8 } from 'node:buffer';
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy';
import { ServiceError } from '@inference-proxy/contracts';

/** A field with a file. */
export interface FormFile {
  /** The file's name as the caller sent it, without folders. */
  readonly name: string;
  readonly type: string;
  readonly bytes: Buffer;
}

export type FormValue = string | FormFile;

/** The fields in the order of their first value. A field may have several values. */
export type Form = ReadonlyMap<string, readonly FormValue[]>;

/** More fields are no form of a person. Each part of a multipart body costs several objects. */
const MOST_FIELDS = 1_000;
const NAME_BYTES = 200;
const HEADER_BYTES = 8 * 1024;
/** The parser gets this much at once. Other calls are served between two pieces. */
const PIECE_BYTES = 256 * 1024;

const URLENCODED = 'application/x-www-form-urlencoded';
const MULTIPART = 'multipart/form-data';

const wrong = (message: string): ServiceError => new ServiceError('invalid_request', message);

/** Returns whether a content type is one of the two forms. */
export function isForm(contentType: string): boolean {
  const essence = (contentType.split(';', 1)[0] as string).trim().toLowerCase();
  return essence === MULTIPART || essence === URLENCODED;
}

/**
 * Reads a form.
 *
 * @param contentType as the caller sent it, with the boundary
 * @throws ServiceError `invalid_request`
 */
export async function readForm(contentType: string, body: Buffer): Promise<Form> {
  const multipart = contentType.trim().toLowerCase().startsWith(MULTIPART);
  const fields = new Map<string, FormValue[]>();
  let count = 0;
  const add = (name: string | undefined, value: FormValue): void => {
    if (name === undefined || name === '') throw wrong('A field of the form has no name.');
    if (Buffer.byteLength(name) > NAME_BYTES) throw wrong(`The name of a field is over ${NAME_BYTES} bytes.`);
    if (++count > MOST_FIELDS) throw wrong(`The form has over ${MOST_FIELDS} fields.`);
    const values = fields.get(name);
    if (values) values.push(value);
    else fields.set(name, [value]);
  };
  if (multipart) await readParts(contentType, body, add);
  else readPairs(body, add);
  return fields;
}

type Add = (name: string | undefined, value: FormValue) => void;

function readPairs(body: Buffer, add: Add): void {
  if (!isUtf8(body)) throw wrong('The form is not UTF-8.');
  const text = body.toString();
  let pairs = 1;
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1)) pairs++;
  if (pairs > MOST_FIELDS) throw wrong(`The form has over ${MOST_FIELDS} fields.`);
  for (const [name, value] of new URLSearchParams(text)) add(name, value);
}

async function readParts(contentType: string, body: Buffer, add: Add): Promise<void> {
  const parser = parserOf(contentType);
  const end = Promise.withResolvers<void>();
  // An error may come before the first `await` of the promise.
  end.promise.catch(() => {});
  const guarded = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      end.reject(error);
    }
  };
  parser.on('field', (name: string | undefined, value: string, nameCut: boolean, valueCut: boolean) =>
    guarded(() => {
      if (nameCut || valueCut) throw wrong('A field of the form is too long.');
      add(name, value);
    }),
  );
  parser.on('file', (name: string, stream: BusboyFileStream, fileName: string, _encoding: string, type: string) => {
    const pieces: Buffer[] = [];
    stream.on('data', (piece: Buffer) => pieces.push(piece));
    stream.on('error', (error) => end.reject(malformed(error)));
    stream.on('end', () =>
      guarded(() => {
        const bytes = Buffer.concat(pieces);
        // A browser sends an empty file without a name for a file input without a choice.
        if (!fileName && bytes.length === 0) return;
        add(name, { name: fileName ?? '', type, bytes });
      }),
    );
  });
  parser.on('partsLimit', () => end.reject(wrong(`The form has over ${MOST_FIELDS} fields.`)));
  parser.on('error', (error: unknown) => end.reject(malformed(error)));
  parser.on('finish', () => end.resolve());
  let failed = false;
  end.promise.catch(() => {
    failed = true;
  });
  for (let at = 0; at < body.length && !failed; at += PIECE_BYTES) {
    const piece = body.subarray(at, at + PIECE_BYTES);
    if (at > 0) await new Promise((resolve) => setImmediate(resolve));
    await Promise.race([end.promise, new Promise<void>((resolve) => parser.write(piece, () => resolve()))]);
  }
  if (!failed) parser.end();
  await end.promise;
}

function parserOf(contentType: string): BusboyInstance {
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      limits: {
        parts: MOST_FIELDS,
        fieldNameSize: NAME_BYTES,
        fieldSize: Number.POSITIVE_INFINITY,
        headerSize: HEADER_BYTES,
      },
    });
  } catch (error) {
    throw malformed(error);
  }
}

/** @param error of the parser, such as `Multipart: Boundary not found` or `Unexpected end of multipart data` */
const malformed = (error: unknown): ServiceError =>
  error instanceof ServiceError
    ? error
    : wrong(`The form is malformed: ${error instanceof Error ? error.message : String(error)}.`);

/** Returns bytes that are equal for equal forms. The boundary of a multipart body is another in each request. */
export function canonical(form: Form): Buffer {
  const files: Buffer[] = [];
  const named = [...form].map(([name, values]) => [
    name,
    values.map((value) => {
      if (typeof value === 'string') return value;
      files.push(value.bytes);
      return { name: value.name, type: value.type, bytes: value.bytes.length };
    }),
  ]);
  return Buffer.concat([Buffer.from(`${JSON.stringify(named)}\n`), ...files]);
}
