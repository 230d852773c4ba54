# One image per service: docker build --target gateway|worker|dispatcher . (docker-compose.yml does). Works with and without BuildKit.
ARG NODE_IMAGE=node:24-bookworm-slim
# Pins the image above: NODE_DIGEST=@sha256:... See docs/operations/deploy.md, "Pinned images".
ARG NODE_DIGEST=

FROM ${NODE_IMAGE}${NODE_DIGEST} AS base
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

FROM base AS build
COPY --from=manifests /app ./
RUN npm install --ignore-scripts --no-audit --loglevel=error
COPY tsconfig.base.json ./
COPY scripts/bundle.mjs scripts/
COPY packages packages
COPY apps apps
# In the order of their imports: docs/architecture.md.
RUN for built in packages/contracts packages/retry packages/crypto packages/egress packages/bundles packages/store packages/platform apps/gateway apps/worker apps/dispatcher; \
  do npm run build --silent --workspace="$built" || exit 1; done
# The console: static files. The build checks no types, so it needs no document of the gateway.
RUN cd apps/console && npx vite build --logLevel warn
# The services read the store's Lua scripts.
RUN find packages/store/src -type f ! -name '*.lua' -delete && find packages/store/src -type d -empty -delete

# A service is its bundle and the files that it reads: docs/decisions/0021-services-run-as-bundles.md.
FROM base AS service
ENV NODE_ENV=production OPERATIONS_HOST=0.0.0.0
COPY deploy/healthcheck.mjs deploy/
COPY --from=build /app/packages/store/src packages/store/src
# Alive, not ready: a Redis that is away for a minute is no reason to start a service again.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["node", "deploy/healthcheck.mjs"]
ENTRYPOINT ["tini", "--"]

FROM service AS gateway
COPY deploy/token /usr/local/bin/
COPY --from=build /app/apps/gateway/package.json apps/gateway/
COPY --from=build /app/apps/gateway/dist/bundle apps/gateway/dist/bundle
# The page of `GET /docs`.
COPY apps/gateway/page apps/gateway/page
COPY --from=build /app/node_modules/swagger-ui-dist/package.json /app/node_modules/swagger-ui-dist/LICENSE /app/node_modules/swagger-ui-dist/swagger-ui-bundle.js /app/node_modules/swagger-ui-dist/swagger-ui.css /app/node_modules/swagger-ui-dist/favicon-32x32.png node_modules/swagger-ui-dist/
# The page of `GET /console`.
COPY --from=build /app/apps/console/dist apps/console/dist
# A new volume takes the owner of the folder.
RUN mkdir /bundles && chown node:node /bundles
ENV HOST=0.0.0.0 PORT=8080 OPERATIONS_PORT=9464 BUNDLES_URL=file:/bundles
EXPOSE 8080 9464
USER node
CMD ["node", "--enable-source-maps", "apps/gateway/dist/bundle/main.js"]

FROM service AS worker
RUN apt-get update \
  && apt-get install --yes --no-install-recommends python3 python3-venv \
  && rm -rf /var/lib/apt/lists/*
COPY apps/worker/harness apps/worker/harness
# The worker may not write here. Without bytecode, every start of a replica would compile the harness, which takes 45 ms of CPU.
RUN python3 -m compileall -q apps/worker/harness
# Compiles TypeScript apps: docs/decisions/0048-typescript-of-apps.md.
COPY --from=build /app/node_modules/esbuild node_modules/esbuild
COPY --from=build /app/node_modules/@esbuild node_modules/@esbuild
# Reads the types of TypeScript apps: docs/decisions/0056-types-of-typescript-are-read.md.
COPY --from=build /app/node_modules/@ts-morph node_modules/@ts-morph
COPY --from=build /app/node_modules/minimatch node_modules/minimatch
COPY --from=build /app/node_modules/brace-expansion node_modules/brace-expansion
COPY --from=build /app/node_modules/balanced-match node_modules/balanced-match
COPY --from=build /app/node_modules/path-browserify node_modules/path-browserify
COPY --from=build /app/node_modules/tinyglobby node_modules/tinyglobby
COPY --from=build /app/node_modules/fdir node_modules/fdir
COPY --from=build /app/node_modules/picomatch node_modules/picomatch
COPY --from=build /app/apps/worker/package.json apps/worker/
COPY --from=build /app/apps/worker/dist/bundle apps/worker/dist/bundle
# Apps find this package above their folders: the example `words` needs it.
COPY --from=build /app/node_modules/zod /node_modules/zod
RUN mkdir /bundles /bundle-cache /environments && chown node:node /bundles /bundle-cache /environments
ENV DEPLOYMENTS_DIR=/deployments OPERATIONS_PORT=9465 BUNDLES_URL=file:/bundles BUNDLE_CACHE_DIR=/bundle-cache ENVIRONMENTS_DIR=/environments
EXPOSE 9465
USER node
CMD ["node", "--enable-source-maps", "apps/worker/dist/bundle/main.js"]

FROM service AS dispatcher
COPY --from=build /app/node_modules/@bull-board/ui node_modules/@bull-board/ui
COPY --from=build /app/apps/dispatcher/package.json apps/dispatcher/
COPY --from=build /app/apps/dispatcher/dist/bundle apps/dispatcher/dist/bundle
ENV OPERATIONS_PORT=9466
EXPOSE 9466
USER node
CMD ["node", "--enable-source-maps", "apps/dispatcher/dist/bundle/main.js"]
