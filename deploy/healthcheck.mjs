// The images' HEALTHCHECK: whether the service that runs in this container answers on its operations port (contract 6).
const { OPERATIONS_PORT } = process.env;
const alive = await fetch(`http://127.0.0.1:${OPERATIONS_PORT}/healthz`, { signal: AbortSignal.timeout(4000) }).then(
  ({ ok }) => ok,
  () => false,
);
process.exit(alive ? 0 : 1);
