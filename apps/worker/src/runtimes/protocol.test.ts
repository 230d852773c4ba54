// harness/PROTOCOL.md: the worker writes and reads exactly the files of harness/snapshots, as the harness's own tests do.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { FrameReader } from './frame-reader.ts';
import {
  cancelMessage,
  creditMessage,
  decode,
  drainMessage,
  type Header,
  initMessage,
  ProtocolError,
  runHeader,
} from './protocol.ts';

const HARNESS = join(import.meta.dirname, '../../harness');
const RUN_ID = '0199a0c4-7b1e-7c3a-9f10-3f2b8c1d4e5f';
const snapshot = (name: string): Buffer => readFileSync(join(HARNESS, 'snapshots', `${name}.frame`));

const limits = { maxItemBytes: 1_000, maxOutputBytes: 3_000 };
/** The most bytes that a harness collects for one frame. */
const COLLECTED = 512 * 1024;

function framesOf(data: Buffer, size = data.length): [Header, string][] {
  const frames: [Header, string][] = [];
  const reader = new FrameReader(limits, (header, blob) => frames.push([header, blob.toString('latin1')]));
  for (let at = 0; at < data.length; at += size) reader.push(data.subarray(at, at + size));
  return frames;
}

test('the worker writes its messages as in the snapshots', () => {
  const params = Buffer.from('{"prompt":"größe","n":12345678901234567890,"t":1.0}');
  const run = Buffer.concat([runHeader({ runId: RUN_ID, fn: 'generate', paced: true, params }), params]);
  const init = { app: '/srv/apps/demo/chat', entry: 'main.py', concurrency: 100, debug: false };
  expect(run).toEqual(snapshot('worker-run'));
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const none = Buffer.from('{}');
  const traced = runHeader({ runId: RUN_ID, fn: 'generate', paced: false, params: none, traceparent });
  expect(Buffer.concat([traced, none])).toEqual(snapshot('worker-run-traced'));
  expect(initMessage({ ...init, maxItemBytes: 8_388_608, maxOutputBytes: 67_108_864, maxLogBytes: 262_144 })).toEqual(
    snapshot('worker-init'),
  );
  const files = snapshot('worker-run-files');
  const withFiles = { runId: RUN_ID, fn: 'generate', paced: false, params: files.subarray(files.indexOf(0)) };
  expect(Buffer.concat([runHeader(withFiles), withFiles.params])).toEqual(files);
  expect(creditMessage(RUN_ID, 512)).toEqual(snapshot('worker-credit'));
  expect(cancelMessage(RUN_ID)).toEqual(snapshot('worker-cancel'));
  expect(drainMessage()).toEqual(snapshot('worker-drain'));
});

const harnessSnapshots = readdirSync(join(HARNESS, 'snapshots'))
  .filter((file) => file.startsWith('harness-'))
  .map((file) => file.replace('.frame', ''));

test.each(harnessSnapshots)('%s is read', (name) => {
  const [[header, blob] = [{}, '']] = framesOf(snapshot(name));
  const { b, ...fields } = header;
  expect(decode(header)).toMatchObject(fields);
  expect(blob).toHaveLength(Number(b ?? 0));
});

test('frames are the same, whatever the size of the pipe’s chunks', () => {
  const data = Buffer.concat(harnessSnapshots.map(snapshot));
  const whole = framesOf(data);
  expect(whole).toHaveLength(harnessSnapshots.length);
  for (const size of [1, 2, 13, 100]) expect(framesOf(data, size)).toEqual(whole);
});

test('pieces of a body arrive with their bytes, whatever the bytes and the chunks', () => {
  const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  const blobs = [all, Buffer.from([10]), Buffer.from('{"t":"bye"}\n'), all.toReversed()].map((one) => Buffer.from(one));
  const data = blobs.flatMap((blob) => [Buffer.from(`{"r":"${RUN_ID}","k":"b","n":1,"b":${blob.length}}\n`), blob]);
  for (let size = 1; size < 300; size++) {
    const frames = framesOf(Buffer.concat(data), size);
    expect(frames.map(([, blob]) => Buffer.from(blob, 'latin1'))).toEqual(blobs);
    for (const [header] of frames) expect(decode(header)).toMatchObject({ t: 'items', k: 'b', n: 1 });
  }
});

test.each([
  ['{"t":"gossip"}'],
  ['{"r":"x","k":"z","n":1,"b":0}'],
  ['{"r":"x","k":"s","n":0,"b":0}'],
  ['{"t":"done","r":"x","items":-1,"streamed":true,"ms":1}'],
  ['{"t":"error","r":"x","items":0,"streamed":true,"ms":1,"code":"toString","message":""}'],
  ['{"t":"error","r":"x","items":0,"streamed":true,"ms":1,"code":"function_error","message":"","status":200}'],
  [
    '{"t":"error","r":"x","items":0,"streamed":true,"ms":1,"code":"function_error","message":"","retry_after":"a\\r\\nb: c"}',
  ],
  ['{"t":"done","r":"x","items":0,"streamed":true,"ms":1,"b":-5}'],
  ['null'],
  ['Segmentation fault'],
])('%s is refused as an unknown message', (line) => {
  expect(() => framesOf(Buffer.from(`${line}\n`)).map(([header]) => decode(header))).toThrow(ProtocolError);
});

test.each([
  ['items', '{"r":"x","k":"s","n":1,"b":', COLLECTED + limits.maxItemBytes],
  ['lines', '{"t":"log","n":1,"cut":0,"b":', COLLECTED],
  ['a result', '{"t":"done","r":"x","items":0,"streamed":false,"ms":1,"b":', limits.maxOutputBytes],
  ['no blob', '{"t":"bye","b":', 0],
])(
  'a header that announces more bytes of %s than the worker allows is refused before the bytes arrive',
  (_what, head, most) => {
    const frame = Buffer.concat([Buffer.from(`${head}${most}}\n`), Buffer.alloc(most, 'x')]);
    expect(framesOf(frame).map(([, blob]) => blob.length)).toEqual([most]);
    for (const length of [most + 1, 2 ** 31 - 1]) {
      expect(() => framesOf(Buffer.from(`${head}${length}}\n`))).toThrow(ProtocolError);
    }
  },
);
