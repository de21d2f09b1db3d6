/** Keys for a load: each may send 20 requests in 10 s, so there are many of one account. */
import { hashOfKey, newKey, prefixOfKey } from '../src/service/secrets.js'
import type { Store } from '../src/service/store/contract.js'

/** Straight into the store, and before the first start of the service, which then makes none of its own. Closes the store. */
export async function addKeys(store: Store, count: number): Promise<readonly string[]> {
  const nowMs = Date.now()
  const accountId = await store.ensureAccount({ name: 'default', credits: 1_000_000_000, nowMs })
  const keys = Array.from({ length: count }, newKey)
  for (const key of keys)
    await store.addKey({ accountId, hash: hashOfKey(key), prefix: prefixOfKey(key), name: 'bench', nowMs })
  await store.close()
  return keys
}
