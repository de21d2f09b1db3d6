/** The alarm of a time limit, which notices that this process was suspended (a closed lid, SIGSTOP) when it passed. */
import type { Clock, Disarm } from './clock.js'

/** The alarm fires in steps of this length, so that a gap before the limit is noticed. */
const STEP_MS = 5_000
/** A step that ends later than this was a gap: no pause between two status requests is that long. */
const MIN_GAP_MS = 10_000

/** `wasSuspended`: the limit passed in a gap, or directly after one. */
export function limitAlarm(clock: Clock, ms: number, onLimit: (wasSuspended: boolean) => void): Disarm {
  const limitMs = clock.monotonic() + ms
  let wokeMs = Number.NEGATIVE_INFINITY
  let disarm: Disarm
  const step = () => {
    const startedMs = clock.monotonic()
    const stepMs = Math.min(STEP_MS, Math.max(0, limitMs - startedMs))
    disarm = clock.alarm(stepMs, () => {
      const nowMs = clock.monotonic()
      if (nowMs - startedMs - stepMs > MIN_GAP_MS) wokeMs = nowMs
      if (nowMs < limitMs) step()
      else onLimit(nowMs - wokeMs < STEP_MS)
    })
  }
  step()
  return () => disarm()
}

/** Maximum time for the last status request after a gap: the network of a laptop needs some seconds too. */
export const LAST_REQUEST_MS = 30_000
