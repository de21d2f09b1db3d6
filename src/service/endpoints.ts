/**
 * The two endpoints, without HTTP. The checks of a request run in this order (CONTRACT 9):
 *
 *   key (401) → account and IP (403) → rate (429 RATE_LIMITED) → body and model (400) → spend limit (403)
 *   → quota (429 USAGE_EXCEEDED) → balance (402)
 *
 * `admit` makes those up to the rate limit, before the body is read; `create` makes the rest.
 */
import type { Clock } from '../host/clock.js'
import { RUNS_LIMIT } from '../protocol/limits.js'
import { priceOf } from '../protocol/local-prices.js'
import type { Intake } from './intake/index.js'
import { storedKeyId } from './key-lookup.js'
import { createUseRecorder } from './key-use.js'
import type { RateLimiter } from './rate/contract.js'
import { bearerKey, type Caller, callerOf, checkAccess, checkKey, type KeyRecord } from './rules/caller.js'
import type { EmbeddedImage } from './rules/embedded-images.js'
import { Refusal } from './rules/refusal.js'
import { hashOfKey, newRunId } from './secrets.js'
import type { ServiceStore } from './store/service-store.js'
import type { StoredRun } from './stored-run.js'
import type { Worker } from './worker/worker.js'

export interface Endpoints {
  /** The caller of this request. `ip` is called only for a key with a whitelist. Throws `Refusal`: 401, 403, 429. */
  admit(authorization: string | undefined, ip: () => string): Promise<Caller>
  /** Accepts a run, and charges it. Throws `Refusal`: 400, 403, 429, 402. */
  create(caller: Caller, body: readonly Uint8Array[]): Promise<StoredRun>
  /** The same without a key: a run that is created on the console. Throws `Refusal`: 400, 402. */
  createWithoutKey(accountId: number, body: readonly Uint8Array[]): Promise<StoredRun>
  /** Throws `Refusal`: 404. */
  findRun(caller: Caller, id: string): Promise<StoredRun>
}

export interface EndpointsOptions {
  readonly store: Pick<ServiceStore, 'addRun' | 'findRun' | 'recordKeyUse'>
  readonly intake: Pick<Intake, 'read'>
  readonly clock: Pick<Clock, 'now'>
  readonly rateLimiter: RateLimiter
  readonly worker: Pick<Worker, 'wake' | 'prefer'>
  findKey(hash: string, nowMs: number): Promise<KeyRecord | undefined>
  saveImage(image: EmbeddedImage): Promise<void>
  onError(error: unknown): void
}

export function createEndpoints({
  store,
  intake,
  clock,
  rateLimiter,
  worker,
  findKey,
  saveImage,
  onError,
}: EndpointsOptions): Endpoints {
  const recordUse = createUseRecorder(store.recordKeyUse, onError)

  async function accept(
    { accountId, keyId, isFree }: { accountId: number; keyId: number | undefined; isFree: boolean },
    body: readonly Uint8Array[],
  ): Promise<StoredRun> {
    const { model, kind, input, images } = await intake.read(body)
    for (const image of images) await saveImage(image)
    const run: StoredRun = {
      id: newRunId(),
      accountId,
      model,
      kind,
      status: 'queued',
      input,
      outputs: [],
      failure: undefined,
      createdAtMs: clock.now(),
      startedAtMs: undefined,
      finishedAtMs: undefined,
    }
    await store.addRun({ ...run, keyId, price: isFree ? 0 : priceOf(run.kind, input) })
    worker.wake(run.id)
    return run
  }

  return {
    async admit(authorization, ip) {
      const key = bearerKey(authorization)
      const nowMs = clock.now()
      const record = checkKey(key, await findKey(hashOfKey(key), nowMs), nowMs)
      checkAccess(record, ip)
      const isFree = await rateLimiter.take(String(record.id), record.rate ?? RUNS_LIMIT)
      if (!isFree) throw new Refusal('RATE_LIMITED')
      recordUse(record.id, nowMs)
      return callerOf(record)
    },

    create({ accountId, keyId }, body) {
      const stored = storedKeyId(keyId)
      return accept({ accountId, keyId: stored, isFree: stored === undefined }, body)
    },
    createWithoutKey: (accountId, body) => accept({ accountId, keyId: undefined, isFree: false }, body),

    async findRun(caller, id) {
      const run = await store.findRun(id, caller.accountId)
      if (run === undefined) throw new Refusal('run_not_found')
      if (run.status === 'queued') worker.prefer(run.id)
      return run
    },
  }
}
