import { useEffect } from 'preact/hooks'
import { formatRelative, formatTime } from '../format.js'
import { createStore, useStore } from '../store.js'

/** Current time, the base of relative times. */
const nowStore = createStore(Date.now())
const TICK_MS = 15_000
let users = 0
let timer: ReturnType<typeof setInterval> | undefined

/** Returns the current time. The shared timer runs only while a component uses it. */
export function useNow(): number {
  useEffect(() => {
    users++
    nowStore.set(() => Date.now())
    timer ??= setInterval(() => nowStore.set(() => Date.now()), TICK_MS)
    return () => {
      users--
      if (users > 0) return
      clearInterval(timer)
      timer = undefined
    }
  }, [])
  return useStore(nowStore)
}

export interface TimeProps {
  readonly at: string | null | undefined
  /** Text for null, such as `never`. */
  readonly none?: string
}

/** Relative time, with the full time in its title. */
export function Time({ at, none = '–' }: TimeProps) {
  const now = useNow()
  if (at === null || at === undefined) return <span class="muted">{none}</span>
  return (
    <time dateTime={at} title={formatTime(at)}>
      {formatRelative(at, now)}
    </time>
  )
}
