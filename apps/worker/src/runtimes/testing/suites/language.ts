// Contract 1: everything that a language of functions must do.
import { afterAll, expect } from '@jest/globals';
import { conformance } from '../../conformance.ts';
import { functionConformance } from '../../function-conformance.ts';
import { Call } from '../calls.ts';
import { Language, type LanguageName } from '../languages.ts';
import { faultSuite } from './faults.ts';
import { lifeSuite } from './life.ts';
import { outputSuite } from './output.ts';
import { paceSuite } from './pace.ts';
import { valueSuite } from './values.ts';

export function languageConformance(name: LanguageName): void {
  const language = new Language(name);
  afterAll(() => language.end());
  conformance(name, {
    make: (concurrency, limits) => language.make(concurrency, limits),
    call: (runtime, deed, params, paced) => new Call(runtime, deed, params, paced),
    broken: 'function_error',
    // JavaScript has one kind of number. Integers past 2^53 become BigInt.
    echoed: (text) => language.of({ Python: text, Node: text.replace('1.0', '1') }),
    cleanedUp: async (run) => expect(run.printed).toContain('cleaned up'),
  });
  functionConformance(language);
  valueSuite(name);
  outputSuite(name);
  paceSuite(name);
  lifeSuite(name);
  faultSuite(name);
}
