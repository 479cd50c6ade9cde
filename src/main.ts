import 'reflect-metadata';
import { runEmbedded } from './apps/embedded/run-embedded.js';
import { runRole } from './apps/role-process.js';

// D2: without DATABASE_URL everything runs here, PostgreSQL included.
await (process.env['DATABASE_URL'] ? runRole('all') : runEmbedded());
