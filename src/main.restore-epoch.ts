import 'reflect-metadata';
import { runRestoreEpoch } from './apps/restore-epoch.app.js';

process.exitCode = await runRestoreEpoch(process.argv.slice(2), process.env);
