import { useEffect, useState } from 'preact/hooks'
import { formatFullTime, formatRelative } from '../format.js'
import { createStore, useStore } from '../store.js'

/** Current time, the base of relative times. */
const nowStore = createStore(Date.now())
const TICK_MS = 15_000
let users = 0
let timer: ReturnType<typeof setInterval> | undefined

/** Returns the current time, which is drawn again four times a minute. One timer runs while a component uses it. */
export function useNow(): number {
  const now = useStore(nowStore)
  useEffect(() => {
    if (users++ === 0) nowStore.set(() => Date.now())
    timer ??= setInterval(() => nowStore.set(() => Date.now()), TICK_MS)
    return () => {
      if (--users > 0) return
      clearInterval(timer)
      timer = undefined
    }
  }, [])
  return now
}

export interface TimeProps {
  readonly at: string | null | undefined
  /** Text for null, such as `never`. */
  readonly none?: string
}

/** Relative time, with the full time in the title. */
export function Time({ at, none = '–' }: TimeProps) {
  const text = formatRelative(at, useNow())
  if (at === null || at === undefined) return <span class="muted">{none}</span>
  return (
    <time dateTime={at} title={formatFullTime(at)}>
      {text}
    </time>
  )
}

/** Returns the current time, each second while `isLive`. */
export function useSeconds(isLive: boolean): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    if (!isLive) return
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [isLive])
  return now
}
