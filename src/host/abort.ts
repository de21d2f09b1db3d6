/** Helpers for abort signals: callbacks, races and timeouts. */
import { setMaxListeners } from 'node:events'

/** Calls `callback` when the signal is aborted, immediately if it already is. The returned function removes the callback. */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => {}
  if (signal.aborted) {
    callback()
    return () => {}
  }
  // Node warns on standard error about more than ten listeners.
  setMaxListeners(0, signal)
  // A new function for each call, so that the same callback can be registered twice.
  const listener = () => callback()
  signal.addEventListener('abort', listener, { once: true })
  return () => signal.removeEventListener('abort', listener)
}

/**
 * Settles like `work`, or rejects with the signal's reason as soon as the signal is aborted. Does not stop `work`: its
 * later result is ignored.
 */
export function raceAbort<Result>(work: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal?.reason))
    work.then(resolve, reject).finally(forget)
  })
}

/** Resolves when the signal is aborted. */
export const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => void onAbort(signal, resolve))

export interface Timeout {
  /** Time limit in milliseconds. Undefined or Infinity: no limit. */
  readonly timeoutMs: number | undefined
  /** Returns the abort reason for the signal of the work when the time is over. */
  reason(): unknown
  /** Calls `ring` after `ms`, unless the returned function is called before. */
  readonly clock: { alarm(ms: number, ring: () => void): () => void }
  readonly signal?: AbortSignal | undefined
}

/**
 * Runs `work` with a signal that is aborted together with `signal`, or when the time is over. `work` decides how it
 * stops; use `raceAbort` for work that ignores its signal.
 */
export async function withTimeout<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
  { timeoutMs = Number.POSITIVE_INFINITY, reason, clock, signal }: Timeout,
): Promise<Result> {
  // Not AbortSignal.any: a long-lived signal would collect one dependent signal per call.
  const controller = new AbortController()
  const forget = onAbort(signal, () => controller.abort(signal?.reason))
  const disarm = Number.isFinite(timeoutMs)
    ? clock.alarm(timeoutMs, () => controller.abort(reason()))
    : () => {}
  try {
    return await work(controller.signal)
  } finally {
    disarm()
    forget()
  }
}

/** Resolves with true if the work ends within this time, else with false. Rejects if the work rejects first. */
export async function settlesWithin(
  ms: number,
  work: Promise<unknown>,
  clock: { sleep(ms: number, signal?: AbortSignal): Promise<void> },
): Promise<boolean> {
  const done = new AbortController()
  const timeout = clock.sleep(ms, done.signal).then(
    () => false,
    () => true,
  )
  try {
    return await Promise.race([work.then(() => true), timeout])
  } finally {
    done.abort()
  }
}

/**
 * Returns a signal that is aborted some time after the other one, with its reason. Call `end` when it is no longer used.
 */
export function createLateSignal(
  signal: AbortSignal,
  lateMs: () => number,
  clock: Timeout['clock'],
): { readonly signal: AbortSignal; end(): void } {
  const late = new AbortController()
  const abort = () => late.abort(signal.reason)
  let disarm = () => {}
  const forget = onAbort(signal, () => {
    if (lateMs() === 0) abort()
    else disarm = clock.alarm(lateMs(), abort)
  })
  return {
    signal: late.signal,
    end(): void {
      forget()
      disarm()
    },
  }
}
