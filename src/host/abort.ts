/** Signals of which a great many may be asked at once. */

const asked = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls back when the signal is aborted, unless what this returns was called before. Of any number of callers the signal has one
 * listener: of more than ten Node warns on standard error.
 */
export function onAbort(signal: AbortSignal | undefined, call: () => void): () => void {
  if (signal === undefined) return () => {}
  const calls = asked.get(signal) ?? listenTo(signal)
  // Two who hand in the same function are two.
  const own = () => call()
  calls.add(own)
  return () => void calls.delete(own)
}

function listenTo(signal: AbortSignal): Set<() => void> {
  const calls = new Set<() => void>()
  asked.set(signal, calls)
  signal.addEventListener(
    'abort',
    () => {
      for (const call of calls) call()
      calls.clear()
    },
    { once: true },
  )
  return calls
}
