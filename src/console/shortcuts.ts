/** Keyboard shortcuts of all pages: `g` then a letter goes to a page, `?` lists them. */
import { useEffect } from 'preact/hooks'
import { linkTo, navigate, type PageName } from './routes.js'

export interface Shortcut {
  readonly keys: readonly string[]
  readonly label: string
}

const GO: Readonly<Record<string, PageName>> = { r: 'runs', n: 'new', k: 'keys', c: 'credits', a: 'account' }

export const SHORTCUTS: readonly Shortcut[] = [
  { keys: ['g', 'r'], label: 'Go to Runs' },
  { keys: ['g', 'n'], label: 'Go to New run' },
  { keys: ['g', 'k'], label: 'Go to API keys' },
  { keys: ['g', 'c'], label: 'Go to Credits' },
  { keys: ['g', 'a'], label: 'Go to Account' },
  { keys: ['/'], label: 'Search, where the page has a search field' },
  { keys: ['j', 'k'], label: 'Go to the next or the previous run' },
  { keys: ['?'], label: 'Show this list' },
]

const MAX_PAUSE_MS = 1_500

/** Whether a key is for the page: not typed as text, not with a modifier, and not for a dialog. */
export function isShortcut(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return false
  const target = event.target instanceof HTMLElement ? event.target : null
  const field = target?.closest('input, textarea, select, [contenteditable]') ?? null
  return field === null && document.querySelector('dialog[open]') === null
}

export function useShortcuts(showList: () => void): void {
  useEffect(() => {
    let startedAt = Number.NEGATIVE_INFINITY
    const onKey = (event: KeyboardEvent) => {
      if (!isShortcut(event)) return
      const page = GO[event.key]
      const isSecond = event.timeStamp - startedAt < MAX_PAUSE_MS
      startedAt = event.key === 'g' ? event.timeStamp : Number.NEGATIVE_INFINITY
      if (isSecond && page !== undefined) {
        // Pages must not handle the `k` of `g k`.
        event.preventDefault()
        navigate(linkTo(page))
      } else if (event.key === '?') showList()
      else if (event.key === '/') focusSearch(event)
    }
    // In the capture phase, so that it runs before the listeners of pages.
    document.addEventListener('keydown', onKey, true)
    return () => document.removeEventListener('keydown', onKey, true)
  }, [showList])
}

function focusSearch(event: KeyboardEvent): void {
  const field = document.querySelector<HTMLInputElement>('main input[type="search"]')
  if (field === null) return
  event.preventDefault()
  field.focus()
}
