export { Sweeper } from './sweeper.js';
export { Sweeps, SweepsModule } from './sweeps.js';
