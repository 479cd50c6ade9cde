# syntax=docker/dockerfile:1
# The service in one image. The command selects the role: dist/src/main.{api,admin,portal,install,worker}.js, dist/src/migrate.js.
# Without a container engine, ops/image/prove.mjs runs the output of `assemble.mjs` under the same restrictions.
# Pin both bases by digest when you build for production.

FROM node:24-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
COPY portal/package.json portal/
COPY sdk/package.json sdk/
COPY cli/package.json cli/
# Includes optional packages, because the build tools have native parts there. The image contains none of this.
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run build && node ops/image/assemble.mjs /app \
  && cd /app && npm sbom --package-lock-only --sbom-format cyclonedx --omit=dev --omit=optional > sbom.cdx.json

# Compile with the same Node.js and user that will run it, otherwise Node.js ignores the cache. It also ignores it on a
# processor with other features than the builder's. A role then compiles at startup.
FROM gcr.io/distroless/nodejs24-debian13:nonroot AS compiled
COPY --from=build /app /app
RUN ["/nodejs/bin/node", "/app/compile.mjs", "/tmp/compiled"]

FROM gcr.io/distroless/nodejs24-debian13:nonroot
WORKDIR /app
COPY --from=build --chown=root:root /app /app
# Node.js writes files that only their owner can read.
COPY --from=compiled --chown=65532:65532 /tmp/compiled /app/compiled
# Inside a container, the network controls access to a port, not the address.
ENV NODE_ENV=production ENV_FILE= HOST=0.0.0.0 ADMIN_HOST=0.0.0.0 OPS_HOST=0.0.0.0 CALLBACK_HOST=0.0.0.0 PORTAL_HOST=0.0.0.0 INSTALL_HOST=0.0.0.0
ENV NODE_COMPILE_CACHE=/app/compiled
USER 65532:65532
# api, admin, ops (probes and metrics), callbacks, portal, install page
EXPOSE 3000 3001 3002 3003 3004 3005
STOPSIGNAL SIGTERM
# The base's entry point is Node.js. Nothing writes to the root, and /tmp is the runtime's tmpfs.
ENTRYPOINT ["/nodejs/bin/node", "--enable-source-maps"]
CMD ["dist/src/main.api.js"]
