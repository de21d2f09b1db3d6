/** Colour theme: light, dark or the system's. The choice is stored in this browser. */
import { savedStore } from './store.js'

export const THEMES = ['system', 'light', 'dark'] as const
type Theme = (typeof THEMES)[number]

export const themeStore = savedStore<Theme>('rushes.theme', THEMES)

export function applyTheme(): void {
  const theme = themeStore.get()
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

export function setTheme(theme: Theme): void {
  themeStore.set(() => theme)
  applyTheme()
}
