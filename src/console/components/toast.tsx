/**
 * Short messages, also announced by screen readers. They disappear after 4 or 8 seconds, and immediately when another
 * page opens, where they could cover a button.
 */
import { useEffect } from 'preact/hooks'
import { connectionStore, isExplained, messageOf, refreshSession } from '../api.js'
import { usePolling } from '../polling.js'
import { createStore, useStore } from '../store.js'
import { Button } from './button.js'
import { Icon } from './icon.js'

export interface ToastLink {
  readonly text: string
  /** URL fragment of a page. */
  readonly href: string
}

interface Toast {
  readonly id: number
  readonly text: string
  readonly tone: 'good' | 'bad'
  readonly link: ToastLink | undefined
  /** URL fragment of the page on which the toast was first shown. */
  readonly page: string
}

export const TOAST_MS = { good: 4_000, bad: 8_000 } as const

const toastStore = createStore<readonly Toast[]>([])
let count = 0

export function showToast(text: string, tone: Toast['tone'] = 'good', link?: ToastLink): void {
  count++
  const toast = { id: count, text, tone, link, page: location.hash }
  toastStore.set((toasts) => [...toasts.slice(-2), toast])
  setTimeout(() => keep(({ id }) => id !== toast.id), TOAST_MS[link === undefined ? tone : 'bad'])
}

/** Shows an error, unless the notice about the connection explains it. */
export function toastError(error: unknown): void {
  if (!isExplained(error)) showToast(messageOf(error), 'bad')
}

function keep(isKept: (toast: Toast) => boolean): void {
  const hasFocus = document.activeElement?.closest('.toasts') != null
  toastStore.set((toasts) => toasts.filter(isKept))
  // If the removed toast had the focus, move the focus to the page's title. Otherwise it would be lost.
  if (hasFocus)
    setTimeout(() => {
      if (document.activeElement === document.body)
        document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true })
    })
}

export function Toasts() {
  const toasts = useStore(toastStore)
  useEffect(() => {
    const onChange = () => keep(({ page }) => page === location.hash)
    window.addEventListener('hashchange', onChange)
    return () => window.removeEventListener('hashchange', onChange)
  }, [])
  return (
    <div class="toasts" role="status" aria-live="polite">
      <ConnectionNotice />
      {toasts.map(({ id, text, tone, link }) => (
        <div key={id} class={`toast toast-${tone}`}>
          <Icon name={tone === 'good' ? 'check' : 'alert'} />
          <span>
            {text} {link !== undefined && <a href={link.href}>{link.text}</a>}
          </span>
          <Button
            kind="ghost"
            size="small"
            icon="close"
            label="Dismiss"
            onClick={() => keep((toast) => toast.id !== id)}
          />
        </div>
      ))}
    </div>
  )
}

/** The only notice of a service that does not answer, or of a proxy that answers in its place. Reconnects by itself. */
function ConnectionNotice() {
  return useStore(connectionStore) === 'lost' ? <Reconnecting /> : null
}

/** Polls the service, since not every page does. */
function Reconnecting() {
  const { retry } = usePolling(
    {
      async ask(signal) {
        await refreshSession(signal)
        return 'done'
      },
    },
    [],
  )
  return (
    <div class="toast toast-warn toast-late">
      <span class="spinner" />
      <span>
        <strong>The service does not answer.</strong> Reconnecting… Your data is safe.
      </span>
      <Button size="small" onClick={retry}>
        Try now
      </Button>
    </div>
  )
}
