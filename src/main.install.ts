import 'reflect-metadata';
import { runRole } from './apps/role-process.js';

await runRole('install');
