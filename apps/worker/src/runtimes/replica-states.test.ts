// Contract 8: the rules of the table of states that the pool relies on.
import { expect, test } from '@jest/globals';
import { after, type ReplicaEvent, type ReplicaState, takesRuns, transitions } from './replica-states.ts';

const states = Object.keys(transitions) as ReplicaState[];
const events: ReplicaEvent[] = ['hello', 'ready', 'failed', 'stuck', 'drain', 'exit'];

test('every state ends when the process ends, and the last state is final', () => {
  for (const state of states) expect(after(state, 'exit')).toBe('exited');
  for (const event of events) expect(after('exited', event)).toBe('exited');
});

test('a replica takes runs only from `ready` until the first event after it', () => {
  for (const state of states) {
    for (const event of events) {
      if (takesRuns(after(state, event)) && !takesRuns(state)) expect([state, event]).toEqual(['loading', 'ready']);
    }
  }
});
