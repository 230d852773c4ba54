// Contract 1, "Parameters and types": JSON Schema (draft 2020-12) of types. A type without a form in JSON accepts every value.
import { ts } from '@ts-morph/common';
import { isLibrary } from './program.mjs';

const DEEPEST = 32;
const MOST = 5_000;
const { TypeFlags } = ts;
/** Types whose values are no objects. */
const PRIMITIVE =
  TypeFlags.StringLike |
  TypeFlags.NumberLike |
  TypeFlags.BigIntLike |
  TypeFlags.BooleanLike |
  TypeFlags.VoidLike |
  TypeFlags.ESSymbolLike |
  TypeFlags.Null;

/** Types whose values are sent as UTF-8 text. */
const BYTES = new Set(['Uint8Array', 'Buffer', 'ArrayBuffer', 'DataView']);
const NUMBERS = /^(?:Int|Uint|Float)\d+(?:Clamped)?Array$/;
/** Names of types that have no name of their own. */
const NAMELESS = new Set(['__type', '__object', '__function', '__class']);

/** @typedef {Record<string, unknown>} Schema */

/** The schemas of one function's parameters, or of its result. */
export class Schemas {
  #program;
  #checker;
  #isOutput;
  /** Schemas of named types, by their names. @type {Map<string, Schema>} */
  #defs = new Map();
  /** @type {Map<ts.Type, string>} */
  #names = new Map();
  #count = 0;

  /**
   * @param {ts.Program} program
   * @param {ts.TypeChecker} checker
   * @param {'input' | 'output'} side the process does not convert parameters, but encodes results
   */
  constructor(program, checker, side) {
    this.#program = program;
    this.#checker = checker;
    this.#isOutput = side === 'output';
  }

  /**
   * Returns the schema of the object of parameters. Only an index signature admits further names.
   *
   * @param {ts.Type} type
   * @returns {Schema | undefined}
   */
  parameters(type) {
    const members = type.isUnion() ? type.types : [type];
    if (members.some((member) => this.isFromLibrary(member) || this.#isOpaque(member))) return undefined;
    const [first, ...others] = members.map((member) => this.#record(member, 0));
    if (first === undefined) return undefined;
    if (others.length === 0) return this.#withDefs({ additionalProperties: false, ...first });
    const all = [first, ...others];
    const names = all.flatMap(({ properties }) => Object.keys(/** @type {object} */ (properties)));
    const isOpen = all.some(({ additionalProperties }) => additionalProperties !== undefined);
    return this.#withDefs({
      type: 'object',
      properties: Object.fromEntries(names.map((name) => [name, {}])),
      ...(!isOpen && { additionalProperties: false }),
      anyOf: all,
    });
  }

  /**
   * Returns the schema of a type, or undefined if it accepts every value.
   *
   * @param {ts.Type} type
   */
  whole(type) {
    const schema = this.#of(type, 0);
    return schema === undefined || Object.keys(schema).length === 0 ? undefined : this.#withDefs(schema);
  }

  /**
   * Returns whether the language or the engine declares the type.
   *
   * @param {ts.Type} type
   */
  isFromLibrary({ symbol }) {
    return symbol !== undefined && !NAMELESS.has(symbol.name) && this.#isDeclaredByLibrary(symbol);
  }

  /** @param {ts.Symbol} symbol */
  #isDeclaredByLibrary(symbol) {
    const file = symbol.declarations?.[0]?.getSourceFile();
    return file !== undefined && isLibrary(this.#program, file);
  }

  /** @param {Schema} schema */
  #withDefs(schema) {
    return this.#defs.size === 0 ? schema : { ...schema, $defs: Object.fromEntries(this.#defs) };
  }

  /**
   * @param {ts.Type} type
   * @param {number} depth
   * @returns {Schema | undefined} undefined for functions and symbols, which JSON leaves out
   */
  #of(type, depth) {
    if (++this.#count > MOST) throw new Error('its types are too large');
    const { flags } = type;
    if (depth > DEEPEST) return {};
    if (flags & TypeFlags.BooleanLiteral) return { const: this.#checker.typeToString(type) === 'true' };
    if (flags & TypeFlags.Boolean) return { type: 'boolean' };
    if (type.isUnion())
      return type.types.every((member) => member.flags & PRIMITIVE)
        ? this.#union(type.types, depth)
        : this.#named(type, depth, () => this.#union(type.types, depth));
    if (type.isStringLiteral() || type.isNumberLiteral()) return { const: type.value };
    if (flags & TypeFlags.StringLike) return { type: 'string' };
    if (flags & TypeFlags.BigIntLike) return { type: 'integer' };
    if (flags & TypeFlags.NumberLike) return { type: 'number' };
    if (flags & TypeFlags.Null) return { type: 'null' };
    if (flags & TypeFlags.VoidLike) return this.#isOutput ? { type: 'null' } : {};
    if (flags & TypeFlags.ESSymbolLike) return undefined;
    if (flags & TypeFlags.NonPrimitive) return { type: 'object' };
    if (type.isIntersection()) return this.#intersection(type, depth);
    if (flags & TypeFlags.Object) return this.#object(type, depth);
    const constraint = flags & TypeFlags.Instantiable ? this.#checker.getBaseConstraintOfType(type) : undefined;
    return constraint === undefined || constraint === type ? {} : this.#of(constraint, depth + 1);
  }

  /**
   * @param {readonly ts.Type[]} types
   * @param {number} depth
   * @returns {Schema}
   */
  #union(types, depth) {
    /** @type {Map<string, Schema>} */
    const parts = new Map();
    /** @type {unknown[]} */
    const values = [];
    for (const type of types) {
      if (type.flags & TypeFlags.VoidLike) continue; // the property is optional
      const schema = this.#of(type, depth + 1);
      if (schema === undefined) continue;
      if (Object.keys(schema).length === 0) return {};
      if ('const' in schema) values.push(schema.const);
      else parts.set(JSON.stringify(schema), schema);
    }
    if (values.includes(true) && values.includes(false)) parts.set('boolean', { type: 'boolean' });
    const rest = parts.has('boolean') ? values.filter((value) => typeof value !== 'boolean') : values;
    const kinds = new Set(rest.map((value) => typeof value));
    const [kind] = kinds;
    if (rest.length === 1) parts.set('values', { const: rest[0] });
    else if (rest.length > 1) parts.set('values', { ...(kinds.size === 1 && { type: kind }), enum: rest });
    const all = [...parts.values()];
    return all.length > 1 ? { anyOf: all } : (all[0] ?? {});
  }

  /**
   * @param {ts.IntersectionType} type
   * @param {number} depth
   */
  #intersection(type, depth) {
    // A brand: a primitive type with properties that no value has.
    const primitive = type.types.find(({ flags }) => flags & PRIMITIVE);
    return primitive === undefined
      ? this.#named(type, depth, () => this.#record(type, depth))
      : this.#of(primitive, depth + 1);
  }

  /**
   * @param {ts.Type} type
   * @param {number} depth
   * @returns {Schema | undefined}
   */
  #object(type, depth) {
    const checker = this.#checker;
    if (checker.isTupleType(type)) return this.#tuple(/** @type {ts.TupleTypeReference} */ (type), depth);
    if (checker.isArrayType(type)) {
      const [item] = checker.getTypeArguments(/** @type {ts.TypeReference} */ (type));
      return { type: 'array', items: (item && this.#of(item, depth + 1)) ?? {} };
    }
    if (type.getCallSignatures().length > 0) return undefined;
    if (this.isFromLibrary(type)) return this.#library(type, depth);
    const toJson = this.#isOutput ? type.getProperty('toJSON') : undefined;
    if (toJson !== undefined) {
      const [signature] = checker.getTypeOfSymbol(toJson).getCallSignatures();
      return signature === undefined ? {} : this.#of(signature.getReturnType(), depth + 1);
    }
    return this.#isOpaque(type) ? {} : this.#named(type, depth, () => this.#record(type, depth));
  }

  /**
   * Returns whether the type is a class with methods, which values from JSON do not have.
   *
   * @param {ts.Type} type
   */
  #isOpaque(type) {
    return (
      !this.#isOutput &&
      type.isClass() &&
      type.getProperties().some(({ flags }) => (flags & ts.SymbolFlags.Method) !== 0)
    );
  }

  /**
   * @param {ts.TupleTypeReference} type
   * @param {number} depth
   */
  #tuple(type, depth) {
    const { minLength, elementFlags } = type.target;
    const schemas = this.#checker.getTypeArguments(type).map((item) => this.#of(item, depth + 1) ?? {});
    const fixed = elementFlags.findIndex((flags) => (flags & ts.ElementFlags.Variable) !== 0);
    const prefix = fixed === -1 ? schemas : schemas.slice(0, fixed);
    return {
      type: 'array',
      ...(prefix.length > 0 && { prefixItems: prefix }),
      items: fixed === -1 ? false : fixed === schemas.length - 1 ? schemas[fixed] : {},
      ...(minLength > 0 && { minItems: minLength }),
    };
  }

  /**
   * @param {ts.Type} type
   * @param {number} depth
   * @returns {Schema}
   */
  #library(type, depth) {
    if (!this.#isOutput) return {};
    const { name } = type.symbol;
    const [item] = this.#checker.getTypeArguments(/** @type {ts.TypeReference} */ (type));
    if (name === 'Date') return { type: 'string', format: 'date-time' };
    if (name === 'Map' || name === 'ReadonlyMap') return { type: 'object' };
    if (name === 'Set' || name === 'ReadonlySet')
      return { type: 'array', items: (item && this.#of(item, depth + 1)) ?? {} };
    if (BYTES.has(name) || name === 'URL') return { type: 'string' };
    return NUMBERS.test(name) ? { type: 'array', items: { type: 'number' } } : {};
  }

  /**
   * Returns a reference to a type with a name, or the schema of another type.
   *
   * @param {ts.Type} type
   * @param {number} depth
   * @param {() => Schema} make makes the schema of the type
   * @returns {Schema}
   */
  #named(type, depth, make) {
    const { aliasSymbol: alias } = type;
    // `Record` and similar types of the language are no names of the author's.
    const symbol = alias !== undefined && this.#isDeclaredByLibrary(alias) ? undefined : (alias ?? type.symbol);
    if (symbol === undefined || NAMELESS.has(symbol.name)) return depth > DEEPEST ? {} : make();
    let name = this.#names.get(type);
    if (name === undefined) {
      name = symbol.name;
      for (let number = 2; this.#defs.has(name); number++) name = `${symbol.name}${number}`;
      this.#names.set(type, name);
      this.#defs.set(name, {}); // the type may contain itself
      this.#defs.set(name, make());
    }
    return { $ref: `#/$defs/${name}` };
  }

  /**
   * @param {ts.Type} type
   * @param {number} depth
   * @returns {Schema}
   */
  #record(type, depth) {
    /** @type {[string, Schema][]} */
    const properties = [];
    /** @type {string[]} */
    const required = [];
    for (const property of type.getProperties()) {
      const valueType = this.#checker.getTypeOfSymbol(property);
      const schema = this.#of(valueType, depth + 1);
      if (schema === undefined || property.name.startsWith('__@')) continue; // a function, or a symbol's name
      const description = ts.displayPartsToString(property.getDocumentationComment(this.#checker)).trim();
      properties.push([property.name, description === '' ? schema : { ...schema, description }]);
      if (!isOptional(property, valueType)) required.push(property.name);
    }
    const index = type.getStringIndexType();
    return {
      type: 'object',
      properties: Object.fromEntries(properties),
      ...(required.length > 0 && { required }),
      ...(index !== undefined && { additionalProperties: this.#of(index, depth + 1) ?? {} }),
    };
  }
}

/**
 * @param {ts.Symbol} property
 * @param {ts.Type} type
 */
const isOptional = (property, type) =>
  (property.flags & ts.SymbolFlags.Optional) !== 0 ||
  (type.flags & (TypeFlags.Any | TypeFlags.Unknown | TypeFlags.VoidLike)) !== 0 ||
  (type.isUnion() && type.types.some(({ flags }) => flags & TypeFlags.VoidLike));
