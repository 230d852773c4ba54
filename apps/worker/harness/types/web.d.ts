// Types of every engine that appear in the functions of apps. Only their names have a meaning (schemas.mjs).
interface AbortSignal {
  readonly aborted: boolean;
}
interface Blob {
  readonly size: number;
}
interface ReadableStream<Item = unknown> {
  readonly locked: boolean;
  getReader(): { read(): Promise<{ done: boolean; value: Item }> };
}
declare var ReadableStream: { new <Item = unknown>(...source: unknown[]): ReadableStream<Item> };
interface Response {
  readonly status: number;
}
declare var Response: { new (...init: unknown[]): Response; json(...init: unknown[]): Response };
declare function fetch(...request: unknown[]): Promise<Response>;
interface URL {
  readonly href: string;
}
declare var URL: { new (...parts: unknown[]): URL };
