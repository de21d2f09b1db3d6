/** Polling of the service: a hook, its loop and intervals, and the notice of failed polls. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, messageOf } from '../api.js'
import { Notice, RetryButton } from '../components/notice.js'

export interface Polling {
  /** Of the last request; undefined after a response. */
  readonly error: unknown
  /** Polls now. */
  retry(): void
}

interface PollingOptions {
  readonly ask: (signal: AbortSignal) => Promise<PollResult>
  /** An error that ends the polling. By default, none does. */
  readonly isFinal?: (error: unknown) => boolean
}

/** Polls at once, and again from the start when `deps` change. */
export function usePolling(options: PollingOptions, deps: readonly unknown[]): Polling {
  const [error, setError] = useState<unknown>()
  const poller = useRef<Poller>(undefined)
  // Keeps the newest functions without a restart for each draw.
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

/** `done` ends the polling. */
export type PollResult = 'unfinished' | 'finished' | 'done'

interface PollerParts {
  ask(signal: AbortSignal): Promise<PollResult>
  isVisible(): boolean
  /** An error that ends the polling: a run that does not exist. */
  isFinal(error: unknown): boolean
  /** From the response. */
  retryAfterMs(error: unknown): number | undefined
  /** Called with the error of each failed request, and with undefined after a response. */
  onError(error: unknown): void
  /** Returns the function that stops it. */
  setTimer(act: () => void, ms: number): () => void
}

interface Poller {
  /** Polls now, unless a request is in flight. Restarts after a final error too. */
  askNow(): void
  /** The page was shown or hidden. */
  onVisibility(): void
  /** Ignores later responses. */
  stop(): void
}

/** The loop without the page: polls at once, then by `pollDelayMs`, and continues after errors. */
export function startPolling(parts: PollerParts): Poller {
  const controller = new AbortController()
  const { signal } = controller
  let stopTimer = () => {}
  let isAsking = false
  let found: PollResult = 'unfinished'
  let failures = 0

  const plan = (retryAfterMs: number | undefined) => {
    stopTimer()
    const state = { isVisible: parts.isVisible(), hasUnfinished: found === 'unfinished', failures }
    const delay = pollDelayMs({ ...state, retryAfterMs })
    if (delay !== undefined) stopTimer = parts.setTimer(() => void poll(), delay)
  }
  const poll = async () => {
    if (isAsking || found === 'done' || signal.aborted) return
    stopTimer()
    isAsking = true
    let failure: { readonly error: unknown } | undefined
    try {
      found = await parts.ask(signal)
      failures = 0
    } catch (error) {
      failures++
      failure = { error }
    }
    isAsking = false
    if (signal.aborted) return
    parts.onError(failure?.error)
    const isOver = failure === undefined ? found === 'done' : parts.isFinal(failure.error)
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
  /** Whether a run that the page shows is unfinished. */
  readonly hasUnfinished: boolean
  /** Failed requests since the last response. */
  readonly failures: number
  /** From the last response. */
  readonly retryAfterMs?: number | undefined
}

const UNFINISHED_POLL_MS = 2_000
/** While all runs are finished, for runs that are created elsewhere. */
export const FINISHED_POLL_MS = 5_000
const MAX_POLL_MS = 30_000

/** The wait before the next request; undefined while the page is hidden. */
export function pollDelayMs({
  isVisible,
  hasUnfinished,
  failures,
  retryAfterMs = 0,
}: PollState): number | undefined {
  if (!isVisible) return undefined
  const interval = hasUnfinished ? UNFINISHED_POLL_MS : FINISHED_POLL_MS
  const grown = failures === 0 ? interval : Math.min(MAX_POLL_MS, UNFINISHED_POLL_MS * 2 ** (failures - 1))
  return Math.max(grown, retryAfterMs)
}

/** For errors other than a lost connection, which has its own notice above every page. */
export function PollingNotice({ error, retry }: Polling) {
  const isShown = error !== undefined && !(error instanceof ApiError && error.code === 'network')
  return (
    <div role="status">
      {isShown && (
        <Notice
          tone="warn"
          title="Live updates are interrupted. Trying again."
          action={<RetryButton label="Try now" onClick={retry} />}
        >
          {messageOf(error)}
        </Notice>
      )}
    </div>
  )
}
