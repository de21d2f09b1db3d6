import { useEffect, useState } from 'preact/hooks'
import { formatFullTime, formatMoment, formatRelative } from '../format.js'
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

/** Relative time, with the full time in the title. */
export function Time({ at, none = '–' }: TimeProps) {
  const now = useNow()
  if (at === null || at === undefined) return <span class="muted">{none}</span>
  return (
    <time dateTime={at} title={formatFullTime(at)}>
      {formatRelative(at, now)}
    </time>
  )
}

/** Local and relative time, with the full time in the title. */
export function Moment({ at }: { readonly at: string }) {
  const now = useNow()
  return (
    <time dateTime={at} title={formatFullTime(at)}>
      {formatMoment(at, now)}
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
