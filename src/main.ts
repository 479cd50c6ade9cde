import 'reflect-metadata';
import { runRole } from './apps/role-process.js';
import { runEmbedded } from './embedded/run-embedded.js';

// Without DATABASE_URL, everything runs in this process, including PostgreSQL (D2).
await (process.env['DATABASE_URL'] ? runRole('all') : runEmbedded());
