export { EsimAccessProvider, type EsimAccessSettings, type EsimAccessTools } from './esim-access-provider.js';
export { signEsimAccessRequest } from './request-signature.js';
