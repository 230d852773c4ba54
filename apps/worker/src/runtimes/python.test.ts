// Contract 1 and harness/PROTOCOL.md: apps in Python, on real processes.
import { languageConformance } from './testing/suites/language.ts';

languageConformance('Python');
