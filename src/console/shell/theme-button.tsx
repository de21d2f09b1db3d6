import { Button } from '../components/button.js'
import type { IconName } from '../components/icon.js'
import { useStore } from '../store.js'
import { setTheme, THEMES, type Theme, themeStore } from '../theme.js'

const ICONS: Readonly<Record<Theme, IconName>> = { system: 'system', light: 'sun', dark: 'moon' }
const NAMES: Readonly<Record<Theme, string>> = { system: 'as the system', light: 'light', dark: 'dark' }

export function ThemeButton() {
  const theme = useStore(themeStore)
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system'
  return (
    <Button
      kind="ghost"
      size="small"
      icon={ICONS[theme]}
      label={`Colours: ${NAMES[theme]}. Change to ${NAMES[next]}`}
      onClick={() => setTheme(next)}
    />
  )
}
