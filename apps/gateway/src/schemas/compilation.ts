// Contract 1, "Parameters and types": compiles a checked schema with Ajv, piece by piece.
// docs/decisions/0042-ajv-checks-parameters.md
import { setImmediate } from 'node:timers/promises';
import { _, Ajv2020, type KeywordCxt, Name, nil, type ValidateFunction } from 'ajv/dist/2020.js';
import { callValidateCode } from 'ajv/dist/vocabularies/code.js';
import type { CheckedSchema } from './checked-schema.ts';
import { formats } from './formats.ts';
import { PIECE, piecesOf } from './pieces.ts';

/** What a failed check reports. */
export type Errors = 'unread' | 'first' | 'all';

/** Compiles schemas in turns: one piece, then the event loop serves calls, then a piece of the next schema. */
export class Compiler {
  #last: Promise<unknown> = Promise.resolve();

  async compiled({ schema, patterns }: CheckedSchema, errors: Errors): Promise<ValidateFunction> {
    const validates: ValidateFunction[] = [];
    const ajv = ajvOf(patterns, errors, validates);
    for (const piece of piecesOf(schema)) await this.#turn(() => validates.push(compiledPiece(ajv, piece)));
    return validates.at(-1) as ValidateFunction;
  }

  #turn(work: () => void): Promise<void> {
    const turn = this.#last.then(() => setImmediate()).then(work);
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}

function compiledPiece(ajv: Ajv2020, piece: object | boolean): ValidateFunction {
  const validate = ajv.compile(piece);
  // V8 compiles a function at its first call.
  validate({});
  return validate;
}

/** Returns an instance for one schema. An instance would keep every schema that it ever compiled. */
function ajvOf(patterns: CheckedSchema['patterns'], errors: Errors, validates: readonly ValidateFunction[]): Ajv2020 {
  const regExp = (pattern: string) => patterns.get(pattern) as unknown as RegExp;
  return new Ajv2020({
    allErrors: errors === 'all',
    verbose: errors !== 'unread',
    messages: errors !== 'unread',
    formats,
    keywords: [{ keyword: PIECE, code: (context: KeywordCxt) => callPiece(context, validates) }],
    strict: false,
    // A number such as 1e400 is infinite here.
    strictNumbers: true,
    // The keywords were read one by one: checked-schema.ts.
    meta: false,
    validateSchema: false,
    logger: false,
    // A parameter may have the name of a member of every object, such as `constructor`.
    ownProperties: true,
    multipleOfPrecision: 9,
    // Without the optimizer, Ajv compiles in a third of the time. V8 removes what is left over.
    code: { regExp: Object.assign(regExp, { code: 'patternOf' }), optimize: false },
  });
}

const FOUND = new Name('vErrors');
const COUNT = new Name('errors');

/** Makes the code that calls a compiled piece. A keyword with a function would overwrite the errors of the piece. */
function callPiece(context: KeywordCxt, validates: readonly ValidateFunction[]): void {
  const { gen, it } = context;
  const validate = validates[context.schema as number] as ValidateFunction;
  const path = `${it.errSchemaPath}/${PIECE}`;
  const piece = gen.scopeValue('validate', { ref: validate });
  const placed = gen.scopeValue('keyword', {
    ref: () => validate.errors?.map((error) => ({ ...error, schemaPath: path + error.schemaPath.slice(1) })),
  });
  context.result(callValidateCode(context, piece, nil), undefined, () => {
    gen.assign(FOUND, _`${FOUND} === null ? ${placed}() : ${FOUND}.concat(${placed}())`);
    gen.assign(COUNT, _`${FOUND}.length`);
  });
}
