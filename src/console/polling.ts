/** Polls the service: the hook, the polling loop, and its intervals. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, connectionStore, isExplained, isOutage } from './api.js'
import { useStore } from './store.js'

export interface Polling {
  /** Error of the last poll; undefined after a successful one, and while the notice about the connection explains it. */
  readonly error: unknown
  /** Polls now. */
  retry(): void
}

interface PollingOptions {
  readonly ask: (signal: AbortSignal) => Promise<PollResult>
  /** Returns true for an error that ends the polling. By default, every error is retried. */
  readonly isFinal?: (error: unknown) => boolean
}

/** Polls immediately and at intervals. Restarts when `deps` change. */
export function usePolling(options: PollingOptions, deps: readonly unknown[]): Polling {
  const [error, setError] = useState<unknown>()
  const poller = useRef<Poller>(undefined)
  // Lets the poller call the newest functions, without a restart each time the component is drawn.
  const latest = useRef(options)
  latest.current = options
  useEffect(() => {
    let failure: unknown
    const reconnection = whenReconnected(() => {
      if (isOutage(failure)) started.askNow()
    })
    const started = startPolling({
      ask: (signal) => latest.current.ask(signal),
      isVisible: () => document.visibilityState === 'visible',
      isFinal: (thrown) => latest.current.isFinal?.(thrown) ?? false,
      retryAfterMs: (thrown) =>
        thrown instanceof ApiError && thrown.retryAfterS !== undefined
          ? thrown.retryAfterS * 1_000
          : undefined,
      onError(thrown) {
        failure = thrown
        if (thrown === undefined) reconnection.succeeded()
        setError(() => thrown)
      },
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
      reconnection.stop()
      document.removeEventListener('visibilitychange', started.onVisibility)
      window.removeEventListener('online', started.askNow)
      setError(undefined)
    }
  }, deps)
  return { error: useShownError(error), retry: useCallback(() => poller.current?.askNow(), []) }
}

/** Returns undefined while the notice about the connection explains the error. */
export function useShownError(error: unknown): unknown {
  useStore(connectionStore)
  return isExplained(error) ? undefined : error
}

/**
 * Calls `retry` when the service answers again. Calls it only once until `succeeded` is called: the failure may be that
 * of one request.
 */
function whenReconnected(retry: () => void) {
  let isArmed = true
  const stop = connectionStore.subscribe(() => {
    if (!isArmed || connectionStore.get() === 'lost') return
    isArmed = false
    retry()
  })
  const succeeded = () => {
    isArmed = true
  }
  return { stop, succeeded }
}

/** `done` ends the polling. */
export type PollResult = 'unfinished' | 'finished' | 'done'

interface PollerParts {
  ask(signal: AbortSignal): Promise<PollResult>
  isVisible(): boolean
  /** Returns true for an error that ends the polling, such as a run that does not exist. */
  isFinal(error: unknown): boolean
  /** Minimum delay before the next poll, from the `Retry-After` header. */
  retryAfterMs(error: unknown): number | undefined
  /** Called after each poll: with its error, or with undefined after a successful poll. */
  onError(error: unknown): void
  /** Returns a function that clears the timer. */
  setTimer(act: () => void, ms: number): () => void
}

interface Poller {
  /** Polls now, unless a request is in flight. Also restarts the polling after a final error. */
  askNow(): void
  /** Call when the tab is shown or hidden. */
  onVisibility(): void
  /** Ends the polling and ignores later responses. */
  stop(): void
}

/**
 * Polling loop, without access to the DOM. Polls immediately, then after the delays from `pollDelayMs`. Continues after
 * errors.
 */
export function startPolling(parts: PollerParts): Poller {
  const controller = new AbortController()
  const { signal } = controller
  let stopTimer = () => {}
  let isAsking = false
  let lastResult: PollResult = 'unfinished'
  let failures = 0

  const plan = (retryAfterMs: number | undefined) => {
    stopTimer()
    const state = { isVisible: parts.isVisible(), hasUnfinished: lastResult === 'unfinished', failures }
    const delay = pollDelayMs({ ...state, retryAfterMs })
    if (delay !== undefined) stopTimer = parts.setTimer(() => void poll(), delay)
  }
  const poll = async () => {
    if (isAsking || lastResult === 'done' || signal.aborted) return
    stopTimer()
    isAsking = true
    let failure: { readonly error: unknown } | undefined
    try {
      lastResult = await parts.ask(signal)
      failures = 0
    } catch (error) {
      failures++
      failure = { error }
    }
    isAsking = false
    if (signal.aborted) return
    parts.onError(failure?.error)
    const isOver = failure === undefined ? lastResult === 'done' : parts.isFinal(failure.error)
    if (!isOver) plan(failure && parts.retryAfterMs(failure.error))
  }
  void poll()
  return {
    askNow: () => void poll(),
    onVisibility() {
      if (parts.isVisible()) void poll()
      else stopTimer()
    },
    stop() {
      controller.abort()
      stopTimer()
    },
  }
}

interface PollState {
  readonly isVisible: boolean
  /** True if the page shows an unfinished run. */
  readonly hasUnfinished: boolean
  /** Number of failed polls since the last successful one. */
  readonly failures: number
  /** Minimum delay from the last response. */
  readonly retryAfterMs?: number | undefined
}

const UNFINISHED_POLL_MS = 2_000
/** Interval while all runs are finished. Finds runs that other clients create. */
export const FINISHED_POLL_MS = 5_000
const MAX_POLL_MS = 30_000

/** Returns the delay before the next poll. Doubles after each failure. Undefined while the tab is hidden. */
export function pollDelayMs({
  isVisible,
  hasUnfinished,
  failures,
  retryAfterMs = 0,
}: PollState): number | undefined {
  if (!isVisible) return undefined
  const interval = hasUnfinished ? UNFINISHED_POLL_MS : FINISHED_POLL_MS
  const withBackoff =
    failures === 0 ? interval : Math.min(MAX_POLL_MS, UNFINISHED_POLL_MS * 2 ** (failures - 1))
  return Math.max(withBackoff, retryAfterMs)
}
