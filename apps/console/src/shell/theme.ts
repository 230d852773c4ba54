// Light and dark: the system's preference, or the choice of the person.
import { effect, signal } from '@preact/signals';

const KEY = 'inference-proxy.theme';
const CHOICES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof CHOICES)[number];

const isTheme = (text: string | null): text is Theme => CHOICES.some((choice) => choice === text);
const stored = localStorage.getItem(KEY);

export const theme = signal<Theme>(isTheme(stored) ? stored : 'system');

/** Changes with the colours of the page. Charts draw on a canvas, so they have to draw again. */
export const coloursChanged = signal(0);

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem(KEY, theme.value);
  coloursChanged.value = coloursChanged.peek() + 1;
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  coloursChanged.value += 1;
});

export function nextTheme(): void {
  theme.value = CHOICES[(CHOICES.indexOf(theme.value) + 1) % CHOICES.length] as Theme;
}
