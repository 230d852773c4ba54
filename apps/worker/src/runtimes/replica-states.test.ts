// The table of a replica's life holds what the pool relies on.
import { expect, test } from '@jest/globals';
import { after, type ReplicaEvent, type ReplicaState, takesRuns, transitions } from './replica-states.ts';

const states = Object.keys(transitions) as ReplicaState[];
const events: ReplicaEvent[] = ['hello', 'ready', 'failed', 'stuck', 'drain', 'exit'];

test('every state but the last ends with the process, and nothing leaves the last', () => {
  for (const state of states) expect(after(state, 'exit')).toBe('exited');
  for (const event of events) expect(after('exited', event)).toBe('exited');
});

test('runs are taken only between ready and the first word of an end, and never again', () => {
  for (const state of states) {
    for (const event of events) {
      if (takesRuns(after(state, event)) && !takesRuns(state)) expect([state, event]).toEqual(['loading', 'ready']);
    }
  }
});
