/** Light, dark or the system's colours; the choice is stored in this browser. */
import { createStore } from './store.js'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const KEY = 'rushes.theme'

function savedTheme(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(KEY)) ?? 'system'
  } catch {
    // Storage can be turned off.
    return 'system'
  }
}

export const themeStore = createStore<Theme>(savedTheme())

export function applyTheme(): void {
  const theme = themeStore.get()
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

export function setTheme(theme: Theme): void {
  themeStore.set(() => theme)
  applyTheme()
  try {
    localStorage.setItem(KEY, theme)
  } catch {
    // Lasts until the page is closed.
  }
}
