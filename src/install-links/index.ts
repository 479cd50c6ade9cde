import { InstallLinkEntity } from './install-link.entity.js';

/**
 * Install links and the page that they open (D63). Owns the table `install_links`.
 * Callers: partners (`/v1/esims/{id}/install-links`), the portal, and travelers, who have nothing but the link.
 * Flow of a page: edge -> `InstallAuthenticator` (token to link, eSIM, brand and package in one statement) ->
 * `InstallPageController` (access code, state, device, language) -> HTML without script -> `OpeningCounter`.
 */
export { InstallLinksRepository, type LinkUse } from './install-links.repository.js';
export {
  InstallLinksApiModule,
  InstallLinksModule,
  InstallLinksPageModule,
  InstallLinksPortalModule,
} from './install-links.module.js';
export { errorPage } from './page/error-page.js';
export { InstallAuthenticator } from './page/install-visit.js';
export { isPageFile, servePageFiles } from './page/page-files.js';

export const INSTALL_LINK_ENTITIES = [InstallLinkEntity];
