// jest's sequencer. Without durations of an earlier run, jest starts with the largest files. But the longest tests are in small files,
// so one of two workers would end alone with them.
import Sequencer from '@jest/test-sequencer';
import { LONGEST_TESTS } from './slow-tests.mjs';

export default class LongestFirst extends Sequencer {
  /** Returns the test files in the order of their starts. */
  sort(tests) {
    const rank = ({ path }) => {
      const at = LONGEST_TESTS.findIndex((file) => path.endsWith(`/${file}`));
      return at < 0 ? LONGEST_TESTS.length : at;
    };
    return super.sort(tests).sort((a, b) => rank(a) - rank(b));
  }
}
