export const THEMES = [
  ['system', 'Theme of the system'],
  ['light', 'Light'],
  ['dark', 'Dark'],
] as const;

export type Theme = (typeof THEMES)[number][0];

const KEY = 'theme';

/** The theme that this browser's user chose. */
export function savedTheme(): Theme {
  const saved = THEMES.find(([theme]) => theme === stored());
  return saved?.[0] ?? 'system';
}

/** Null also if the browser forbids storage. */
function stored(): string | null {
  try {
    return window.localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export function applyTheme(theme: Theme): void {
  document.documentElement.dataset['theme'] = theme;
}

/** Shows a theme, and keeps it for the next visit if the browser allows that. */
export function chooseTheme(theme: Theme): void {
  applyTheme(theme);
  try {
    window.localStorage.setItem(KEY, theme);
  } catch {
    // The theme lasts until the page is closed.
  }
}
