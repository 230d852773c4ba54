// Contract 1, "Parameters and types": cuts a checked schema into pieces. Ajv compiles them one at a time, and calls are served between
// two pieces. A piece is compiled after the pieces inside it.

/** The keyword of a schema that stands for a piece. Its value is the number of the piece. */
export const PIECE = 'piece';

/** Ajv needs 0.1 to 0.3 ms for a part. */
const PIECE_PARTS = 32;
/** A smaller schema costs less inside its parent than as a piece. */
const SMALLEST_PIECE = 4;

export type Part = object | boolean;
type Node = Record<string, unknown>;

interface Counted {
  readonly schema: Part;
  /** The number of its parts outside of other pieces. */
  readonly parts: number;
}

/** Returns the pieces of a schema in the order of their compilation. The last one is the schema itself. */
export function piecesOf(schema: Part): Part[] {
  const pieces: Part[] = [];
  const whole = new Cut(pieces).part(schema);
  return [...pieces, whole.schema];
}

class Cut {
  readonly #pieces: Part[];

  constructor(pieces: Part[]) {
    this.#pieces = pieces;
  }

  part(schema: Part): Counted {
    if (typeof schema === 'boolean') return { schema, parts: 1 };
    const node = { ...schema } as Node;
    const children = Object.entries(node).flatMap(([keyword, value]) => this.#children(keyword, value));
    let parts = children.reduce((sum, child) => sum + child.counted.parts, 1);
    if (parts > PIECE_PARTS)
      for (const child of children)
        if (child.counted.parts >= SMALLEST_PIECE) {
          parts -= child.counted.parts - 1;
          child.counted = { schema: this.#piece(child.counted.schema), parts: 1 };
        }
    for (const keyword of new Set(children.map((child) => child.keyword))) {
      const of = children.filter((child) => child.keyword === keyword);
      const entries = of.map(({ name, counted }) => [name, counted.schema] as const);
      const values = entries.map(([, value]) => value);
      node[keyword] =
        keyword === 'properties' ? Object.fromEntries(entries) : Array.isArray(node[keyword]) ? values : values[0];
    }
    if (parts <= PIECE_PARTS) return { schema: node, parts };
    const groups = this.#groups(children.filter(({ keyword }) => keyword === 'properties'));
    if (groups.length === 0) return { schema: node, parts };
    // `additionalProperties` needs the names.
    node.properties = Object.fromEntries(Object.keys(node.properties as Node).map((name) => [name, true]));
    node.allOf = [...((node.allOf as Part[] | undefined) ?? []), ...groups];
    return { schema: node, parts: PIECE_PARTS };
  }

  #children(keyword: string, value: unknown): Child[] {
    const child = (name: string, schema: unknown): Child => ({ keyword, name, counted: this.part(schema as Part) });
    switch (keyword) {
      case 'properties':
        return Object.entries(value as Node).map(([name, schema]) => child(name, schema));
      case 'prefixItems':
      case 'anyOf':
      case 'allOf':
        return (value as Part[]).map((schema, at) => child(String(at), schema));
      case 'items':
      case 'additionalProperties':
        return [child('', value)];
      default:
        return [];
    }
  }

  /** Returns pieces with a part of the properties each. */
  #groups(properties: readonly Child[]): Part[] {
    const groups: Child[][] = [];
    let parts = PIECE_PARTS;
    for (const property of properties) {
      parts += property.counted.parts;
      if (parts > PIECE_PARTS) {
        groups.push([]);
        parts = property.counted.parts;
      }
      groups.at(-1)?.push(property);
    }
    return groups.map((group) =>
      this.#piece({ properties: Object.fromEntries(group.map(({ name, counted }) => [name, counted.schema])) }),
    );
  }

  #piece(schema: Part): Part {
    return { [PIECE]: this.#pieces.push(schema) - 1 };
  }
}

interface Child {
  readonly keyword: string;
  readonly name: string;
  counted: Counted;
}
