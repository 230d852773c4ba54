// `npm run journeys`: prints the files of the gateway and the store that run during one call of each journey.
import { journeyFiles } from './journey-files.ts';

for (const [journey, { gateway, store, lua }] of Object.entries(await journeyFiles())) {
  const typescript = gateway.length + store.length;
  process.stdout.write(
    `${journey}: ${typescript + lua.length} files = gateway ${gateway.length} + store ${store.length} + Lua ${lua.length}\n` +
      [...gateway, ...store, ...lua].map((file) => `  ${file}\n`).join(''),
  );
}
