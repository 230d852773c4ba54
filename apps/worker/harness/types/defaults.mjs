// Contract 1, "Parameters and types": the defaults in the pattern of a parameter, such as `{ n = 3 }`.
import { ts } from '@ts-morph/common';

/** No JSON value. */
const NONE = Symbol('none');

/**
 * Returns the defaults of a parameter's properties that JSON can represent.
 *
 * @param {ts.ParameterDeclaration} declaration
 * @returns {Record<string, unknown>}
 */
export function defaultsOf({ name: pattern }) {
  if (!ts.isObjectBindingPattern(pattern)) return {};
  /** @type {Record<string, unknown>} */
  const found = {};
  for (const { name, propertyName, initializer } of pattern.elements) {
    const own = propertyName ?? name;
    if (initializer === undefined || !(ts.isIdentifier(own) || ts.isStringLiteral(own))) continue;
    const value = literal(initializer);
    if (value !== NONE) found[own.text] = value;
  }
  return found;
}

/**
 * @param {ts.Expression} expression
 * @returns {unknown} `NONE` for code that computes a value
 */
function literal(expression) {
  if (ts.isStringLiteralLike(expression)) return expression.text;
  if (ts.isNumericLiteral(expression)) return Number(expression.text);
  switch (expression.kind) {
    case ts.SyntaxKind.TrueKeyword:
      return true;
    case ts.SyntaxKind.FalseKeyword:
      return false;
    case ts.SyntaxKind.NullKeyword:
      return null;
  }
  if (ts.isPrefixUnaryExpression(expression) && expression.operator === ts.SyntaxKind.MinusToken) {
    const value = literal(expression.operand);
    return typeof value === 'number' ? -value : NONE;
  }
  if (ts.isArrayLiteralExpression(expression)) {
    const values = expression.elements.map(literal);
    return values.includes(NONE) ? NONE : values;
  }
  return ts.isObjectLiteralExpression(expression) && expression.properties.length === 0 ? {} : NONE;
}
