/** When a key was last used, to the minute: what a person needs to know before disabling it. */
import { storedKeyId } from './key-lookup.js'

const MINUTE_MS = 60_000

/** Writes at most once a minute and key. No request waits for it, and none fails because of it. */
export function createUseRecorder(
  record: (keyId: number, usedAtMs: number) => Promise<void>,
  onError: (error: unknown) => void,
): (keyId: number, nowMs: number) => void {
  const recorded = new Map<number, number>()
  return (keyId, nowMs) => {
    const minuteMs = nowMs - (nowMs % MINUTE_MS)
    if (storedKeyId(keyId) === undefined || minuteMs <= (recorded.get(keyId) ?? 0)) return
    recorded.set(keyId, minuteMs)
    record(keyId, minuteMs).catch(onError)
  }
}
