// Contract 1, "Parameters and types": checks the parameters of a call against the function's schema, before the call is accepted.
// docs/decisions/0042-ajv-checks-parameters.md
import { type FunctionSpec, ServiceError } from '@inference-proxy/contracts';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { checkedSchema } from './checked-schema.ts';
import { formats } from './formats.ts';
import { compiledPattern } from './patterns.ts';
import { violations, wrongParameters } from './violations.ts';

/** The most steps of a check. They take about 30 ms, and no other call is served meanwhile. The function's process judges larger bodies. */
const MOST_STEPS = 16 * 1024 * 1024;
/** All violations of a body are listed up to this size. Of a larger body, the first violation is reported. */
const LISTED_BYTES = 64 * 1024;
/** A list of all violations may need an object for each step. */
const LISTED_STEPS = 1024 * 1024;

/** Checks one function's parameters. */
type Check = (params: object, bytes: number) => ServiceError | undefined;

const acceptAll: Check = () => undefined;

const patternOf = Object.assign((pattern: string) => compiledPattern(pattern) as RegExp & { size: number }, {
  code: 'compiledPattern',
});

/** Compiles with an instance of its own. An instance would keep every schema that it ever compiled. */
function compiled(schema: object | boolean, errors: 'unread' | 'first' | 'all'): ValidateFunction {
  const ajv = new Ajv2020({
    allErrors: errors === 'all',
    verbose: errors !== 'unread',
    messages: errors !== 'unread',
    formats,
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
    code: { regExp: patternOf, optimize: false },
  });
  return ajv.compile(schema);
}

export interface ValidatorsParts {
  /** Called once for each function whose schema the gateway cannot check. */
  readonly onUnread: (name: string, cause: unknown) => void;
}

/** The compiled schemas of all functions. The store keeps the object of an unchanged announcement, so each schema is compiled once. */
export class Validators {
  readonly #checks = new WeakMap<FunctionSpec, Check>();
  readonly #parts: ValidatorsParts;

  constructor(parts: ValidatorsParts) {
    this.#parts = parts;
  }

  /**
   * Returns the error of a call whose parameters violate the function's schema.
   *
   * @param bytes length of the body
   */
  violation(spec: FunctionSpec, params: object, bytes: number): ServiceError | undefined {
    if (spec.schema === undefined) return undefined;
    let check = this.#checks.get(spec);
    if (check === undefined) {
      check = this.#checkOf(spec, spec.schema.parameters);
      this.#checks.set(spec, check);
    }
    return check(params, bytes);
  }

  #checkOf({ name }: FunctionSpec, parameters: unknown): Check {
    try {
      const read = checkedSchema(parameters);
      if (read === undefined)
        throw new Error('the schema has over 500 parts, or a form that the gateway does not read');
      const { schema, cost } = read;
      const accepts = compiled(schema, 'unread');
      const listings: { first?: ValidateFunction; all?: ValidateFunction } = {};
      return (params, bytes) => {
        const steps = bytes * cost;
        if (steps > MOST_STEPS || accepts(params)) return undefined;
        const errors = bytes <= LISTED_BYTES && steps <= LISTED_STEPS ? 'all' : 'first';
        const listing = listings[errors] ?? compiled(schema, errors);
        listings[errors] = listing;
        listing(params);
        return wrongParameters(name, violations(listing.errors ?? [], params));
      };
    } catch (error) {
      this.#parts.onUnread(name, error);
      return acceptAll;
    }
  }
}
