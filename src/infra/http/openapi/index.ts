export { ApiRefusals, type PageOptions, Responds, type RespondsOptions, RespondsPage } from './responds.js';
