import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import { formatFullTime, formatMoment, formatRelative } from '../format.js'
import { createStore } from '../store.js'

/** Current time, the base of relative times. */
const nowStore = createStore(Date.now())
const TICK_MS = 15_000
let users = 0
let timer: ReturnType<typeof setInterval> | undefined

/**
 * Returns a value that depends on the current time. Draws again only if the value changes: a list can have thousands of
 * times. The shared timer runs only while a component uses it.
 */
function useTick<Value>(read: (now: number) => Value): Value {
  const [, draw] = useReducer((count: number) => count + 1, 0)
  const value = read(nowStore.get())
  const drawn = useRef({ read, value })
  drawn.current = { read, value }
  useEffect(() => {
    const stop = nowStore.subscribe(() => {
      if (drawn.current.read(nowStore.get()) !== drawn.current.value) draw(undefined)
    })
    if (users++ === 0) nowStore.set(() => Date.now())
    timer ??= setInterval(() => nowStore.set(() => Date.now()), TICK_MS)
    return () => {
      stop()
      if (--users > 0) return
      clearInterval(timer)
      timer = undefined
    }
  }, [])
  return value
}

export const useNow = (): number => useTick((now) => now)

export interface TimeProps {
  readonly at: string | null | undefined
  /** Text for null, such as `never`. */
  readonly none?: string
}

/** Relative time, with the full time in the title. */
export function Time({ at, none = '–' }: TimeProps) {
  const text = useTick((now) => formatRelative(at, now))
  if (at === null || at === undefined) return <span class="muted">{none}</span>
  return (
    <time dateTime={at} title={formatFullTime(at)}>
      {text}
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
