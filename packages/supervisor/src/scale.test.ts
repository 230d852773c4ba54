// `npm start -- --scale gateway=2`: the option and the names of the processes.
import { expect, test } from '@jest/globals';
import { instancesOf, readScale, WrongScale } from './scale.ts';

test('--scale is read in both notations, and the last value of a service counts', () => {
  expect(readScale([])).toEqual({ gateway: 1, worker: 1, dispatcher: 1 });
  expect(readScale(['--scale', 'gateway=2', '--scale=worker=4', '--scale', 'worker=3'])).toEqual({
    gateway: 2,
    worker: 3,
    dispatcher: 1,
  });
});

test.each(['redis=2', 'gateway', 'gateway=', 'gateway=0', 'gateway=65', 'gateway=-1', 'gateway=two', '=2', ''])(
  '--scale %j is rejected with the expected form',
  (wish) => {
    expect(() => readScale(['--scale', wish])).toThrow(WrongScale);
  },
);

test('an unknown option is rejected', () => {
  expect(() => readScale(['--scales', 'gateway=2'])).toThrow('Expected --scale <gateway|worker|dispatcher>=<1 to 64>');
});

test('several instances of a service are numbered', () => {
  expect(instancesOf('worker', 1)).toEqual(['worker']);
  expect(instancesOf('worker', 3)).toEqual(['worker-1', 'worker-2', 'worker-3']);
});
