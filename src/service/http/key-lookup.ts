/**
 * Keys of a running service: stored keys, and with `--local` one key that exists only in memory. Also records when each
 * key was last used.
 */
import type { KeyRecord } from '../rules/key-checks.js'
import { newKey } from '../rules/secrets.js'
import type { Store } from '../store/index.js'

export const FIRST_ACCOUNT = { name: 'default', credits: 10_000 }
/** No stored key has this id, since row ids start at 1. */
const EPHEMERAL_ID = 0

export interface KeyLookup {
  /** The key that was just created. It can be shown only now, since only its hash is stored. */
  readonly newKey: string | undefined
  find(hash: string): Promise<KeyRecord | undefined>
}

/** Creates the first account of a data folder, and its first key unless `ephemeral`. */
export async function openKeyLookup(store: Store, nowMs: number, ephemeral: boolean): Promise<KeyLookup> {
  const accountId = await store.ensureAccount({ ...FIRST_ACCOUNT, nowMs })
  const { apiKey, hash, prefix } = newKey()
  if (!ephemeral) {
    const isFirst = await store.addFirstKey({ accountId, hash, prefix, name: 'first', nowMs })
    return { newKey: isFirst ? apiKey : undefined, find: store.findKey }
  }
  const ephemeralKey: KeyRecord = {
    id: EPHEMERAL_ID,
    accountId,
    disabled: false,
    expiresAtMs: undefined,
    banned: false,
    allowedIps: undefined,
    rate: undefined,
  }
  return {
    newKey: apiKey,
    find: async (hashOfUsed) => (hashOfUsed === hash ? ephemeralKey : store.findKey(hashOfUsed)),
  }
}

/** Returns undefined for the ephemeral key. Its runs are free, so that `--local` never runs out of credits. */
export const storedKeyId = (keyId: number): number | undefined => (keyId === EPHEMERAL_ID ? undefined : keyId)

const MINUTE_MS = 60_000

/**
 * Records the minute in which a key was last used, once, to help users decide which key to disable. No request waits for the
 * write or fails because of it.
 */
export function createUseRecorder(
  { recordKeyUse }: Pick<Store, 'recordKeyUse'>,
  onError: (error: unknown) => void,
): (keyId: number, nowMs: number) => void {
  const recorded = new Map<number, number>()
  return (keyId, nowMs) => {
    const minuteMs = nowMs - (nowMs % MINUTE_MS)
    if (storedKeyId(keyId) === undefined || minuteMs <= (recorded.get(keyId) ?? 0)) return
    recorded.set(keyId, minuteMs)
    recordKeyUse(keyId, minuteMs).catch(onError)
  }
}
