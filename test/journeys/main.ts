// `npm run journeys`: prints the files of the gateway and the store that run during one call of each journey.
import { JOURNEYS, type JourneyFiles, journeyFiles } from './journey-files.ts';

for (const [journey, { gateway, store, lua }] of Object.entries<JourneyFiles>(await journeyFiles(JOURNEYS))) {
  const typescript = gateway.length + store.length;
  process.stdout.write(
    `${journey}: ${typescript + lua.length} files = gateway ${gateway.length} + store ${store.length} + Lua ${lua.length}\n` +
      [...gateway, ...store, ...lua].map((file) => `  ${file}\n`).join(''),
  );
}
