# One image per service: docker build --target gateway|worker|dispatcher . (docker-compose.yml does). Works with and without BuildKit.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS base
# An init as pid 1: passes signals on, and takes in what the functions' processes leave behind.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends tini \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app

# What decides what is installed, alone: a change of code installs nothing again.
FROM base AS manifests
COPY package.json package-lock.json .npmrc ./
COPY packages packages
COPY apps apps
COPY test/package.json test/
RUN find packages apps -type f ! -name package.json -delete && find packages apps -type d -empty -delete

FROM manifests AS build
RUN npm install --ignore-scripts --no-audit --loglevel=error
COPY tsconfig.base.json ./
COPY packages packages
COPY apps apps
# In the order of their imports (docs/architecture.md); what only a build needs is left behind.
RUN for built in packages/contracts packages/crypto packages/egress packages/store packages/platform apps/gateway apps/worker apps/dispatcher; \
  do node_modules/.bin/tsc -p "$built/tsconfig.build.json" || exit 1; done \
  && find packages apps -depth \( -name src -o -name test -o -name node_modules -o -name 'tsconfig*.json' \) -exec rm -rf {} +

# What the services need to run: one layer that the three images share.
FROM manifests AS dependencies
RUN npm install --omit=dev --ignore-scripts --no-audit --loglevel=error --workspace=apps/gateway --workspace=apps/worker --workspace=apps/dispatcher \
  && npm cache clean --force

FROM base AS service
ENV NODE_ENV=production OPERATIONS_HOST=0.0.0.0
COPY deploy/healthcheck.mjs deploy/
COPY --from=dependencies /app ./
COPY --from=build /app/packages packages
# Alive, not ready: a Redis that is away for a minute is no reason to start a service again.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["node", "deploy/healthcheck.mjs"]
ENTRYPOINT ["tini", "--"]

FROM service AS gateway
COPY deploy/token /usr/local/bin/
COPY --from=build /app/apps/gateway apps/gateway
ENV HOST=0.0.0.0 PORT=8080 OPERATIONS_PORT=9464
EXPOSE 8080 9464
USER node
CMD ["node", "--enable-source-maps", "apps/gateway/dist/main.js"]

FROM service AS worker
RUN apt-get update \
  && apt-get install --yes --no-install-recommends python3 python3-venv \
  && rm -rf /var/lib/apt/lists/*
COPY --from=build /app/apps/worker apps/worker
ENV DEPLOYMENTS_DIR=/deployments OPERATIONS_PORT=9465
EXPOSE 9465
USER node
CMD ["node", "--enable-source-maps", "apps/worker/dist/main.js"]

FROM service AS dispatcher
COPY --from=build /app/apps/dispatcher apps/dispatcher
ENV OPERATIONS_PORT=9466
EXPOSE 9466
USER node
CMD ["node", "--enable-source-maps", "apps/dispatcher/dist/main.js"]
