// The images' HEALTHCHECK: whether the service of this container answers on its operations port (Contract 6). With `readyz`: whether it is ready.
const { OPERATIONS_PORT } = process.env;
const path = process.argv[2] ?? 'healthz';
const well = await fetch(`http://127.0.0.1:${OPERATIONS_PORT}/${path}`, { signal: AbortSignal.timeout(4000) }).then(
  ({ ok }) => ok,
  () => false,
);
process.exit(well ? 0 : 1);
