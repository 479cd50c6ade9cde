import 'reflect-metadata';
import { runReconcile } from './apps/reconcile.app.js';

process.exitCode = await runReconcile(process.argv.slice(2), process.env);
