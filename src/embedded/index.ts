/**
 * What only `npm start` without `DATABASE_URL` needs: everything in one process, for a machine with nothing (D2).
 * Owns no table: it talks to the service through its own admin API, as the portal does.
 * Called by `main.ts` alone; tests and the bench use `postgres/` for servers of their own.
 * Flow: settings, PostgreSQL, simulated wholesaler, migration, all roles, demo partner, banner, `ready`.
 */
export { runEmbedded } from './run-embedded.js';
