// Contract 1, "Parameters and types": checks the parameters of a call against the function's schema, before the call is accepted.
// docs/decisions/0042-ajv-checks-parameters.md
import { type FunctionSpec, ServiceError } from '@inference-proxy/contracts';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { checkedSchema } from './checked-schema.ts';
import { Compiler } from './compilation.ts';
import { violations, wrongParameters } from './violations.ts';

/** The most steps of a check. They take about 30 ms, and no other call is served meanwhile. The function's process judges larger bodies. */
const MOST_STEPS = 16 * 1024 * 1024;
/** All violations of a body are listed up to this size. Of a larger body, the first violation is reported. */
const LISTED_BYTES = 64 * 1024;
/** A list of all violations may need an object for each step. */
const LISTED_STEPS = 1024 * 1024;

/** The error of wrong parameters. It is a promise only if a schema must be compiled first. */
type Violation = ServiceError | undefined | Promise<ServiceError | undefined>;

/** Checks one function's parameters. */
type Check = (params: object, bytes: number) => Violation;

const acceptAll: Check = () => undefined;

export interface ValidatorsParts {
  /** Called once for each function whose schema the gateway cannot check. */
  readonly onUnread: (name: string, cause: unknown) => void;
}

/** The compiled schemas of all functions. The store keeps the object of an unchanged announcement, so each schema is compiled once. */
export class Validators {
  readonly #checks = new WeakMap<FunctionSpec, Check | Promise<Check>>();
  readonly #compiler = new Compiler();
  readonly #parts: ValidatorsParts;

  constructor(parts: ValidatorsParts) {
    this.#parts = parts;
  }

  /**
   * Returns the error of a call whose parameters violate the function's schema.
   *
   * @param bytes length of the body
   */
  violation(spec: FunctionSpec, params: object, bytes: number): Violation {
    if (spec.schema === undefined) return undefined;
    let check = this.#checks.get(spec);
    if (check === undefined) {
      check = this.#checkOf(spec, spec.schema.parameters).then((made) => {
        this.#checks.set(spec, made);
        return made;
      });
      this.#checks.set(spec, check);
    }
    return typeof check === 'function' ? check(params, bytes) : check.then((made) => made(params, bytes));
  }

  async #checkOf({ name }: FunctionSpec, parameters: unknown): Promise<Check> {
    try {
      const read = checkedSchema(parameters);
      if (read === undefined)
        throw new Error('the schema has over 500 parts, or a form that the gateway does not read');
      const accepts = await this.#compiler.compiled(read, 'unread');
      const listings: { first?: Promise<ValidateFunction>; all?: Promise<ValidateFunction> } = {};
      return (params, bytes) => {
        const steps = bytes * read.cost;
        if (steps > MOST_STEPS || accepts(params)) return undefined;
        const errors = bytes <= LISTED_BYTES && steps <= LISTED_STEPS ? 'all' : 'first';
        listings[errors] ??= this.#compiler.compiled(read, errors);
        return listings[errors].then((listing) => {
          listing(params);
          return wrongParameters(name, violations(listing.errors ?? [], params));
        });
      };
    } catch (error) {
      this.#parts.onUnread(name, error);
      return acceptAll;
    }
  }
}
