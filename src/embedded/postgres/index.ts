/**
 * A PostgreSQL server owned by this process, from npm's binaries (D2). Independent of the service.
 * `embedded-postgres` adopts or starts a server; `cluster` opens or creates the data; `running-server` implements both
 * ways, starting and adopting; `privileges` lets it run as root; the rest are their tools.
 */
export {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from './embedded-postgres.js';
export { EmbeddedPostgresError } from './errors.js';
export { makeFolder } from './make-folder.js';
export { startTimeOf } from './postgres-process.js';
