/** Abort signals: callbacks, races and timeouts, without a listener for each of many waiters. */

const callbacks = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls `callback` when the signal is aborted, at once if it already is; the returned function takes it back. However
 * many callbacks there are, the signal has one listener: Node warns on standard error when it has more than ten.
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => {}
  if (signal.aborted) {
    callback()
    return () => {}
  }
  const registered = callbacks.get(signal) ?? listenTo(signal)
  // A new function for each call, so that the same callback can be registered twice.
  const own = () => callback()
  registered.add(own)
  return () => void registered.delete(own)
}

function listenTo(signal: AbortSignal): Set<() => void> {
  const registered = new Set<() => void>()
  callbacks.set(signal, registered)
  signal.addEventListener(
    'abort',
    () => {
      let failure: { readonly error: unknown } | undefined
      for (const callback of registered) {
        try {
          callback()
        } catch (error) {
          failure ??= { error }
        }
      }
      registered.clear()
      // As the error of any listener, it is uncaught; but the others were called first.
      if (failure !== undefined) throw failure.error
    },
    { once: true },
  )
  return registered
}

/**
 * The outcome of `work`, or a rejection with the signal's reason as soon as it is aborted. The work itself is not
 * stopped: its late outcome is ignored.
 */
export function raceAbort<Result>(work: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal?.reason))
    work.then(resolve, reject).finally(forget)
  })
}

/** Resolves once the signal is aborted. */
export const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => void onAbort(signal, resolve))

export interface Timeout {
  /** Undefined or Infinity: no limit. */
  readonly timeoutMs: number | undefined
  /** What the signal of the work is aborted with when the time is over. */
  reason(): unknown
  /** Of a clock: calls `ring` after `ms`, unless the returned function is called before. */
  readonly clock: { alarm(ms: number, ring: () => void): () => void }
  readonly signal?: AbortSignal | undefined
}

/**
 * Runs `work` with a signal that is aborted by `signal` and when the time is over. The work decides how it stops; use
 * `raceAbort` for work that ignores its signal.
 */
export async function withTimeout<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
  { timeoutMs = Number.POSITIVE_INFINITY, reason, clock, signal }: Timeout,
): Promise<Result> {
  // Not AbortSignal.any: a signal that lives long would collect one dependent signal per call.
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

/** Resolves with whether the work ended within this time. Rejects when the work does. */
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
