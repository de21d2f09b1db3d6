/** Asking again and again, as a hook. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from '../api.js'
import { type Found, type Poller, startPolling } from './poller.js'

export interface Polling {
  /** Of the last request; undefined after an answer. */
  readonly error: unknown
  /** Asks now. */
  retry(): void
}

export interface PollingOptions {
  readonly ask: (signal: AbortSignal) => Promise<Found>
  /** Whether asking again is of no use. Without it, every error is tried again. */
  readonly isFinal?: (error: unknown) => boolean
}

/** Asks at once, and anew when `deps` change. */
export function usePolling(options: PollingOptions, deps: readonly unknown[]): Polling {
  const [error, setError] = useState<unknown>()
  const poller = useRef<Poller>(undefined)
  // The newest functions, without a new start each time it is drawn.
  const latest = useRef(options)
  latest.current = options
  useEffect(() => {
    const started = startPolling({
      ask: (signal) => latest.current.ask(signal),
      isVisible: () => document.visibilityState === 'visible',
      isFinal: (thrown) => latest.current.isFinal?.(thrown) ?? false,
      retryAfterMs: (thrown) =>
        thrown instanceof ApiError && thrown.retryAfterS !== undefined
          ? thrown.retryAfterS * 1_000
          : undefined,
      onError: (thrown) => setError(() => thrown),
      setTimer: (act, ms) => {
        const timer = setTimeout(act, ms)
        return () => clearTimeout(timer)
      },
    })
    poller.current = started
    document.addEventListener('visibilitychange', started.onVisibility)
    window.addEventListener('online', started.askNow)
    return () => {
      started.stop()
      document.removeEventListener('visibilitychange', started.onVisibility)
      window.removeEventListener('online', started.askNow)
      setError(undefined)
    }
  }, deps)
  return { error, retry: useCallback(() => poller.current?.askNow(), []) }
}
