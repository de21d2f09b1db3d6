/** Asks again and again, in the pace of poll-pace.ts, and never gives up by itself: it knows neither the page nor its requests. */
import { pollDelayMs } from './poll-pace.js'

/** What a request found. `done`: there is nothing more to ask. */
export type Found = 'unfinished' | 'finished' | 'done'

export interface PollerParts {
  ask(signal: AbortSignal): Promise<Found>
  isVisible(): boolean
  /** Whether asking again is of no use: a run that does not exist. */
  isFinal(error: unknown): boolean
  /** What the service asked to wait. */
  retryAfterMs(error: unknown): number | undefined
  /** Told the error of each failed request, and undefined after an answer. */
  onError(error: unknown): void
  /** Returns the function that stops it. */
  setTimer(act: () => void, ms: number): () => void
}

export interface Poller {
  /** Asks now, unless a request is open. Restarts after a final error too. */
  askNow(): void
  /** The page was shown or hidden. */
  onVisibility(): void
  /** An answer that comes later changes nothing. */
  stop(): void
}

/** Asks at once. */
export function startPolling(parts: PollerParts): Poller {
  const controller = new AbortController()
  const { signal } = controller
  let stopTimer = () => {}
  let isAsking = false
  let found: Found = 'unfinished'
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
