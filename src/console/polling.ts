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
    const started = startPolling({
      ask: (signal) => latest.current.ask(signal),
      isFinal: (thrown) => latest.current.isFinal?.(thrown) ?? false,
      onError: (thrown) => setError(() => thrown),
    })
    poller.current = started
    return () => {
      started.stop()
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

/** `done` ends the polling. */
export type PollResult = 'unfinished' | 'finished' | 'done'

interface PollerParts {
  ask(signal: AbortSignal): Promise<PollResult>
  /** Returns true for an error that ends the polling, such as a run that does not exist. */
  isFinal(error: unknown): boolean
  /** Called after each poll: with its error, or with undefined after a successful poll. */
  onError(error: unknown): void
}

interface Poller {
  /** Polls now, unless a request is in flight. Also restarts the polling after a final error. */
  askNow(): void
  /** Ends the polling and ignores later responses. */
  stop(): void
}

/**
 * Polling loop. Polls immediately, then after the delays from `pollDelayMs`. Continues after errors. Polls once more when
 * the service answers again, and not a second time before a successful poll: the failure may be that of one request.
 */
export function startPolling(parts: PollerParts): Poller {
  const controller = new AbortController()
  const { signal } = controller
  let timer: ReturnType<typeof setTimeout> | undefined
  let isAsking = false
  let lastResult: PollResult = 'unfinished'
  let lastError: unknown
  let failures = 0
  let hasReconnected = false

  const plan = () => {
    const retryAfterMs = lastError instanceof ApiError ? (lastError.retryAfterS ?? 0) * 1_000 : 0
    const state = { isVisible: isVisible(), hasUnfinished: lastResult === 'unfinished', failures }
    const delay = pollDelayMs({ ...state, retryAfterMs })
    if (delay !== undefined) timer = setTimeout(askNow, delay)
  }
  const poll = async () => {
    if (isAsking || lastResult === 'done' || signal.aborted) return
    clearTimeout(timer)
    isAsking = true
    try {
      lastResult = await parts.ask(signal)
      lastError = undefined
      failures = 0
    } catch (error) {
      lastError = error
      failures++
    }
    isAsking = false
    if (signal.aborted) return
    if (failures === 0) hasReconnected = false
    parts.onError(lastError)
    const isOver = failures === 0 ? lastResult === 'done' : parts.isFinal(lastError)
    if (!isOver) plan()
  }
  const unsubscribe = connectionStore.subscribe(() => {
    if (hasReconnected || connectionStore.get() === 'lost') return
    hasReconnected = true
    if (isOutage(lastError)) askNow()
  })
  const askNow = () => void poll()
  const onVisibility = () => (isVisible() ? askNow() : clearTimeout(timer))
  document.addEventListener('visibilitychange', onVisibility, { signal })
  window.addEventListener('online', askNow, { signal })
  askNow()
  return {
    askNow,
    stop() {
      controller.abort()
      unsubscribe()
      clearTimeout(timer)
    },
  }
}

const isVisible = (): boolean => document.visibilityState === 'visible'

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
