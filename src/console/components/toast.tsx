/** Short messages that go by themselves, and are read out. */
import { createStore, useStore } from '../store.js'
import { Button } from './button.js'
import { Icon } from './icon.js'

interface Toast {
  readonly id: number
  readonly text: string
  readonly tone: 'good' | 'bad'
}

const TOAST_MS = { good: 4_000, bad: 8_000 } as const

const toastStore = createStore<readonly Toast[]>([])
let count = 0

export function showToast(text: string, tone: Toast['tone'] = 'good'): void {
  count++
  const toast = { id: count, text, tone }
  toastStore.set([...toastStore.get().slice(-2), toast])
  setTimeout(() => remove(toast.id), TOAST_MS[tone])
}

const remove = (id: number) => toastStore.set(toastStore.get().filter((toast) => toast.id !== id))

export function Toasts() {
  const toasts = useStore(toastStore)
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.map(({ id, text, tone }) => (
        <div key={id} class={`toast toast-${tone}`}>
          <Icon name={tone === 'good' ? 'check' : 'alert'} />
          <span>{text}</span>
          <Button kind="ghost" size="small" icon="close" label="Dismiss" onClick={() => remove(id)} />
        </div>
      ))}
    </div>
  )
}
