// docs/architecture.md, "Files of a call": the number of files that a streamed call passes through.
import { expect, test } from '@jest/globals';
import { journeyFiles } from './journey-files.ts';

/** TypeScript files of the gateway and the store. */
const MOST_TYPESCRIPT = 22;
const MOST_LUA = 3;

test('a streamed call passes through few files of the gateway and the store', async () => {
  const { 'streamed call': call } = await journeyFiles(['streamed call']);
  const typescript = [...call.gateway, ...call.store];
  expect(typescript).toEqual(
    expect.arrayContaining(['apps/gateway/src/calls/calls.ts', 'packages/store/src/runs/accept.ts']),
  );
  expect(call.lua).toContain('packages/store/src/runs/accept.lua');
  // A failure shows the files.
  expect(typescript.length > MOST_TYPESCRIPT ? typescript : []).toEqual([]);
  expect(call.lua.length > MOST_LUA ? call.lua : []).toEqual([]);
});
