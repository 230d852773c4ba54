// Builds the static files that the gateway serves at `/console`.
import { defineConfig } from 'vite';

/** A gateway for `npm run dev`, which serves the page itself. */
const GATEWAY = 'http://127.0.0.1:8080';

export default defineConfig({
  base: '/console/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    // Browsers from 2024 on. Older ones lack `light-dark()`, which the themes use.
    target: ['chrome123', 'firefox121', 'safari17.5'],
    // The Content-Security-Policy allows no `data:` URL and no inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { '/v4': GATEWAY, '/readyz': GATEWAY } },
});
