export { type ZenditOptions, ZenditProvider } from './zendit-provider.js';
