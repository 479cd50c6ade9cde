import { answerParent } from '../child-link.js';
import type { LoadPlan, LoadReport } from './plan.js';
import { runLoad } from './run-load.js';

answerParent<LoadPlan, LoadReport>(runLoad);
