// Contract 1 and harness/PROTOCOL.md: apps in JavaScript, on real processes.
import { languageConformance } from './testing/suites/language.ts';

languageConformance('Node');
