// Contract 1, "Parameters and types": the schemas of an app's exported functions.
import { ts } from '@ts-morph/common';
import { defaultsOf } from './defaults.mjs';
import { Schemas } from './schemas.mjs';

/** Types whose values are streams. The first type argument is the type of an item. */
const STREAMS = new Set([
  ...['Generator', 'AsyncGenerator', 'Iterator', 'AsyncIterator', 'IterableIterator', 'AsyncIterableIterator'],
  ...['Iterable', 'AsyncIterable', 'IteratorObject', 'AsyncIteratorObject', 'ReadableStream'],
]);

/**
 * Returns the schema of each exported function, or the reason why it has none.
 *
 * @param {ts.Program} program
 * @param {ts.SourceFile} source
 */
export function functionsOf(program, source) {
  const checker = program.getTypeChecker();
  const module = checker.getSymbolAtLocation(source);
  /** @type {Record<string, unknown>} */
  const found = {};
  if (module === undefined) return found; // CommonJS without imports and exports
  const exported = new Map(checker.getExportsOfModule(module).map((symbol) => [symbol.name, symbol]));
  const main = exported.get('default') ?? exported.get('export=');
  if (main !== undefined) {
    const type = checker.getTypeOfSymbol(main);
    if (type.getCallSignatures().length > 0) add('run', main);
    else for (const property of type.getProperties()) add(property.name, property);
  }
  for (const [name, symbol] of exported) if (name !== 'default' && name !== 'export=') add(name, symbol);
  return found;

  /**
   * @param {string} name
   * @param {ts.Symbol} symbol
   */
  function add(name, symbol) {
    const own = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    const signatures = checker.getTypeOfSymbol(own).getCallSignatures();
    if (signatures.length === 0) return;
    try {
      found[name] = schemaOf(program, checker, own, signatures);
    } catch (error) {
      found[name] = { untyped: /** @type {Error} */ (error).message };
    }
  }
}

/**
 * @param {ts.Program} program
 * @param {ts.TypeChecker} checker
 * @param {ts.Symbol} symbol
 * @param {readonly ts.Signature[]} signatures
 */
function schemaOf(program, checker, symbol, [signature, ...others]) {
  if (signature === undefined || others.length > 0) return { untyped: 'it has overloads' };
  const parameters = parametersOf(program, checker, signature);
  if (typeof parameters === 'string') return { untyped: parameters };
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim();
  const [summary = '', ...rest] = text.split(/\n\s*\n/);
  const description = rest.join('\n\n');
  return {
    ...resultOf(program, checker, signature),
    ...(summary !== '' && { summary: summary.replaceAll(/\s+/g, ' ') }),
    ...(description !== '' && { description }),
    parameters,
  };
}

/**
 * Returns the schema of the object of parameters, or the reason why there is none.
 *
 * @param {ts.Program} program
 * @param {ts.TypeChecker} checker
 * @param {ts.Signature} signature
 * @returns {Record<string, unknown> | string}
 */
function parametersOf(program, checker, signature) {
  const [parameter] = signature.getParameters();
  if (parameter === undefined) return { type: 'object', properties: {}, additionalProperties: false };
  const { valueDeclaration: declaration } = parameter;
  if (declaration === undefined || !ts.isParameter(declaration)) return 'its parameter has no declaration';
  if (declaration.dotDotDotToken !== undefined) return 'it has a rest parameter';
  if (!isAnnotated(declaration)) return 'its parameter has no type';
  const given = checker.getNonNullableType(checker.getTypeOfSymbol(parameter));
  // A type parameter has the properties of its constraint.
  const type = checker.getBaseConstraintOfType(given) ?? given;
  const members = type.isUnion() ? type.types : [type];
  if (!members.every((member) => isObject(checker, member)))
    return `the type of its parameter is not an object: ${checker.typeToString(type)}`;
  const schemas = new Schemas(program, checker, 'input');
  const schema = schemas.parameters(type);
  if (schema === undefined) return `the type of its parameter has no form in JSON: ${checker.typeToString(type)}`;
  const properties = /** @type {Record<string, object>} */ (schema.properties);
  for (const [name, value] of Object.entries(defaultsOf(declaration)))
    if (Object.hasOwn(properties, name)) properties[name] = { ...properties[name], default: value };
  return schema;
}

/**
 * Returns whether the author has given a type, to the parameter or to the function.
 *
 * @param {ts.ParameterDeclaration} declaration
 */
function isAnnotated({ type, parent }) {
  if (type !== undefined) return true;
  const { parent: holder } = parent;
  if (ts.isSatisfiesExpression(holder) || ts.isAsExpression(holder)) return true;
  return ts.isVariableDeclaration(holder) && holder.type !== undefined;
}

/**
 * Returns the kind of the function and the schema of its result or of an item, if JSON has a form for it.
 *
 * @param {ts.Program} program
 * @param {ts.TypeChecker} checker
 * @param {ts.Signature} signature
 */
function resultOf(program, checker, signature) {
  const returned = signature.getReturnType();
  const type = checker.getAwaitedType(returned) ?? returned;
  const schemas = new Schemas(program, checker, 'output');
  if (STREAMS.has(type.symbol?.name ?? '') && schemas.isFromLibrary(type)) {
    const [item] = checker.getTypeArguments(/** @type {ts.TypeReference} */ (type));
    const schema = item && schemas.whole(checker.getAwaitedType(item) ?? item);
    return { kind: 'stream', ...(schema && { item: schema }) };
  }
  const schema = schemas.whole(type);
  return { kind: 'value', ...(schema && { returns: schema }) };
}

/**
 * @param {ts.TypeChecker} checker
 * @param {ts.Type} type
 */
const isObject = (checker, type) =>
  (type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)) !== 0 && !checker.isArrayLikeType(type);
