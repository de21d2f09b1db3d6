/** Colour theme: light, dark or the system's. The choice is stored in this browser. */
import { createStore } from './store.js'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const KEY = 'rushes.theme'

function savedTheme(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(KEY)) ?? 'system'
  } catch {
    // Throws if the user has disabled storage.
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
    // Without storage, the choice lasts until the page is closed.
  }
}
