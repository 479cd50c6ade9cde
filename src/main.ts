import 'reflect-metadata';
import { runRole } from './apps/role-process.js';
import { runEmbedded } from './embedded/run-embedded.js';

// D2: without DATABASE_URL everything runs here, including PostgreSQL.
await (process.env['DATABASE_URL'] ? runRole('all') : runEmbedded());
