/** Dark or light: the reader's choice, else the system's. */

export type Theme = 'dark' | 'light' | 'system';
const KEY = 'corral.theme';
const dark = () => matchMedia('(prefers-color-scheme: dark)');

export function chosenTheme(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === 'dark' || kept === 'light' ? kept : 'system';
}

function apply(): void {
  const theme = chosenTheme();
  document.documentElement.dataset.theme = theme === 'system' ? (dark().matches ? 'dark' : 'light') : theme;
}

export function chooseTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  apply();
}

/** Sets the theme before the first paint and follows the system from then on. */
export function startTheme(): void {
  apply();
  dark().addEventListener('change', apply);
}

/** The theme that is shown now. */
export function shownTheme(): 'dark' | 'light' {
  return document.documentElement.dataset.theme === 'dark' ? 'dark' : 'light';
}
