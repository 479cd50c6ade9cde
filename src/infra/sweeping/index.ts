export { Sweeper } from './sweeper.js';
