/** The keys of a running service: those in the store, and perhaps one that lives in memory only. */
import type { KeyRecord } from './rules/caller.js'
import { hashOfKey, newKey } from './secrets.js'
import type { Store } from './store/contract.js'

const FIRST_ACCOUNT = { name: 'default', credits: 10_000 }
/** Rows begin at 1, so no stored key has this id. */
const EPHEMERAL_ID = 0

export interface KeyLookup {
  /** A key that was made just now and can be shown this once. */
  readonly shown: string | undefined
  find(hash: string): Promise<KeyRecord | undefined>
}

/** On the first start of a data folder there is an account, and a key unless it is to live in memory only. */
export async function openKeyLookup(
  store: Pick<Store, 'ensureAccount' | 'addFirstKey' | 'findKey'>,
  nowMs: number,
  ephemeral: boolean,
): Promise<KeyLookup> {
  const accountId = await store.ensureAccount({ ...FIRST_ACCOUNT, nowMs })
  const key = newKey()
  const hash = hashOfKey(key)
  if (!ephemeral) {
    const isFirst = await store.addFirstKey({ accountId, hash, name: 'first', nowMs })
    return { shown: isFirst ? key : undefined, find: store.findKey }
  }
  const own: KeyRecord = {
    id: EPHEMERAL_ID,
    accountId,
    hash,
    disabled: false,
    expiresAtMs: undefined,
    banned: false,
    allowedIps: undefined,
  }
  return { shown: key, find: async (wanted) => (wanted === hash ? own : store.findKey(wanted)) }
}

/** Runs made with the key in memory name no row of the keys, and cost nothing: `--local` never runs out of credits. */
export const storedKeyId = (keyId: number): number | undefined => (keyId === EPHEMERAL_ID ? undefined : keyId)
