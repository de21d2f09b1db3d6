/** Asks again and again, in the pace of poll-pace.ts. */
import { useEffect, useRef } from 'preact/hooks'
import { ApiError } from '../api.js'
import { pollDelayMs } from './poll-pace.js'

/** What a request found. `done`: there is nothing more to ask. */
export type Found = 'unfinished' | 'finished' | 'done'

/** Asks at once, and anew when `deps` change. A refusal ends it; `ask` shows errors itself. */
export function usePolling(ask: (signal: AbortSignal) => Promise<Found>, deps: readonly unknown[]): void {
  // The newest function, without a new start each time it is drawn.
  const latest = useRef(ask)
  latest.current = ask
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    let timer: number | undefined
    let isAsking = false
    let found: Found = 'unfinished'
    let failures = 0

    const plan = (retryAfterMs?: number) => {
      clearTimeout(timer)
      const isVisible = document.visibilityState === 'visible'
      const hasUnfinished = found === 'unfinished'
      const delay = pollDelayMs({ isVisible, hasUnfinished, failures, retryAfterMs })
      if (found !== 'done' && delay !== undefined) timer = setTimeout(() => void poll(), delay)
    }
    const poll = async () => {
      if (isAsking || found === 'done' || signal.aborted) return
      clearTimeout(timer)
      isAsking = true
      let retryAfterMs: number | undefined
      try {
        found = await latest.current(signal)
        failures = 0
      } catch (error) {
        failures++
        if (!mayAskAgain(error)) found = 'done'
        if (error instanceof ApiError && error.retryAfterS !== undefined)
          retryAfterMs = error.retryAfterS * 1_000
      }
      isAsking = false
      if (!signal.aborted) plan(retryAfterMs)
    }
    const onVisibility = () => {
      if (document.visibilityState === 'visible') void poll()
      else clearTimeout(timer)
    }
    const onOnline = () => void poll()

    document.addEventListener('visibilitychange', onVisibility)
    window.addEventListener('online', onOnline)
    void poll()
    return () => {
      controller.abort()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', onVisibility)
      window.removeEventListener('online', onOnline)
    }
  }, deps)
}

/** What is refused for good is refused again. */
const mayAskAgain = (error: unknown): boolean =>
  error instanceof ApiError && (error.status < 400 || error.status === 429 || error.status >= 500)
