/**
 * The two endpoints, without HTTP. The checks of a request run in this order (docs/service.md):
 *
 *   key (401) → account and IP (403) → rate (429 RATE_LIMITED) → body and model (400) → spend limit (403)
 *   → quota (429 USAGE_EXCEEDED) → balance (402)
 *
 * `admit` makes the checks up to the rate limit, before the body is read. `create` makes the others.
 */
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../host/clock.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'
import type { ModelDocument } from '../../protocol/models.js'
import { creditsOf } from '../../protocol/price.js'
import type { FileWriter } from '../files/contract.js'
import { withSeed } from '../models/served-model.js'
import { type EmbeddedImage, parseCreate, readCreate } from '../rules/create-request.js'
import { bearerKey, type Caller, checkAccess, checkKey, type KeyRecord } from '../rules/key-checks.js'
import type { RateLimiter } from '../rules/rate.js'
import { invalidInput, Refusal } from '../rules/refusal.js'
import { hashOfKey, newRunId } from '../rules/secrets.js'
import type { Store } from '../store/index.js'
import {
  type AddedRun,
  type CarriedModel,
  type Idempotency,
  inputKey,
  type NewRun,
  type StoredRun,
} from '../store/run.js'
import type { SessionProof } from '../store/sql.js'
import type { Worker } from '../worker/worker.js'
import { createUseRecorder, storedKeyId } from './key-lookup.js'
import { SMALL_BYTES } from './request-body.js'

export interface CreatedRun {
  readonly run: StoredRun
}

const IDEMPOTENCY_KEY_MS = 24 * 3_600_000

interface EndpointsOptions {
  readonly store: Store
  readonly documents: readonly ModelDocument[]
  /** Returns what the runs of a model carry. Default: nothing, so that they have the model of their name. */
  carriedBy?(document: ModelDocument): CarriedModel | undefined
  readonly clock: Clock
  readonly rateLimiter: RateLimiter
  readonly worker: Pick<Worker, 'wake' | 'request' | 'stopCanceled'>
  findKey(hash: string): Promise<KeyRecord | undefined>
  readonly files: FileWriter
  readonly onCharged?: ((price: number) => void) | undefined
  onError(error: unknown): void
}

interface Creator {
  readonly accountId: number
  /** Undefined for the ephemeral key, and on the console. */
  readonly keyId: number | undefined
  readonly isFree: boolean
  /** Of a user of the console. */
  readonly by?: SessionProof
}

export const createEndpoints = (options: EndpointsOptions): Endpoints => new Endpoints(options)

export class Endpoints {
  readonly #options: EndpointsOptions
  readonly #recordUse: ReturnType<typeof createUseRecorder>

  constructor(options: EndpointsOptions) {
    this.#options = options
    this.#recordUse = createUseRecorder(options.store, options.onError)
  }

  /**
   * Returns the caller of a request. `ip` is called only if the key has allowed IP addresses. Throws `Refusal`: 401, 403, 429.
   */
  async admit(authorization: string | undefined, ip: () => string): Promise<Caller> {
    const { clock, findKey, rateLimiter } = this.#options
    const nowMs = clock.now()
    const record = checkKey(await findKey(hashOfKey(bearerKey(authorization))), nowMs)
    checkAccess(record, ip)
    const isWithinRate = await rateLimiter.take([String(record.id)], record.rate ?? RUNS_LIMIT)
    if (!isWithinRate) throw new Refusal('RATE_LIMITED')
    this.#recordUse(record.id, nowMs)
    return { keyId: record.id, accountId: record.accountId }
  }

  /**
   * Accepts a run and charges the account. If the account sent the same request with this idempotency key in the last
   * 24 h, returns the earlier run, free of charge. Throws `Refusal`: 400, 401, 403, 429, 402.
   */
  create(
    { accountId, keyId }: Caller,
    body: readonly Uint8Array[],
    idempotencyKey?: string,
  ): Promise<CreatedRun> {
    const stored = storedKeyId(keyId)
    return this.#accept({ accountId, keyId: stored, isFree: stored === undefined }, body, idempotencyKey)
  }

  /** Accepts a run that a user creates on the console, without an API key. Throws `Refusal`: 400, 401, 402, 403. */
  createWithoutKey(
    accountId: number,
    body: readonly Uint8Array[],
    idempotencyKey: string,
    by: SessionProof,
  ): Promise<CreatedRun> {
    return this.#accept({ accountId, keyId: undefined, isFree: false, by }, body, idempotencyKey)
  }

  /** Returns a run of the caller's account. Throws `Refusal`: 404. */
  async findRun({ accountId }: Pick<Caller, 'accountId'>, id: string): Promise<StoredRun> {
    const { store, worker } = this.#options
    const run = await store.findRun(id, accountId)
    if (run === undefined) throw new Refusal('run_not_found')
    if (run.status === 'queued') worker.request(run)
    return run
  }

  /** Cancels a run of the account, and returns it. A run that has ended stays as it is. Throws `Refusal`: 404. */
  async cancelRun(accountId: number, id: string, by?: SessionProof): Promise<StoredRun> {
    const { store, worker, clock } = this.#options
    const found = await store.cancelRun(id, clock.now(), accountId, by)
    if (found?.isCanceled) worker.stopCanceled()
    return await this.findRun({ accountId }, id)
  }

  async #accept(creator: Creator, body: readonly Uint8Array[], key: string | undefined): Promise<CreatedRun> {
    const { store, documents, carriedBy, clock, worker, onCharged } = this.#options
    const { accountId, keyId, isFree, by } = creator
    const nowMs = clock.now()
    const bytes = Buffer.concat(body)
    const parsed = parseCreate(bytes)
    await letOthersRun(bytes)
    let idempotency: Idempotency | undefined
    if (key !== undefined) {
      const request = createHash('sha256').update(bytes).digest('hex')
      idempotency = { key, request, sinceMs: nowMs - IDEMPOTENCY_KEY_MS }
      // Before the input is checked: the models may have changed since the first create.
      const before = await store.findCreated(accountId, idempotency)
      const earlier = before && idOfAdded(before)
      if (earlier !== undefined) return { run: await this.findRun({ accountId }, earlier) }
      await letOthersRun(bytes)
    }
    const { document, input, images } = readCreate(parsed, documents)
    const run: StoredRun = {
      id: newRunId(),
      accountId,
      model: document.name,
      kind: document.kind,
      status: 'queued',
      input: withSeed(input, document),
      outputs: [],
      failure: undefined,
      createdAtMs: nowMs,
      startedAtMs: undefined,
      finishedAtMs: undefined,
    }
    const price = isFree ? 0 : creditsOf(document, input)
    const carried = carriedBy?.(document)
    const added = await addRun(this.#options, { ...run, keyId, by, price, carried, idempotency }, images)
    if (added !== run.id) return { run: await this.findRun({ accountId }, added) }
    worker.wake(run)
    onCharged?.(price)
    return { run }
  }
}

/** Answers other requests between two steps of a large create. For a body of 64 MiB, a step takes about 0.3 s. */
const letOthersRun = async ({ byteLength }: Uint8Array): Promise<unknown> =>
  byteLength > SMALL_BYTES ? await setImmediate() : undefined

/** Stores the images of the run and adds it. Returns its id, or that of an earlier run with its idempotency key. */
async function addRun(
  { store, files, onError }: EndpointsOptions,
  run: NewRun,
  images: readonly EmbeddedImage[],
): Promise<string> {
  const add = async (created: NewRun) => idOfAdded(await store.addRun(created))
  const keys = new Map(images.map((image) => [inputKey(run.id, image.sha256), image]))
  const discard = async (): Promise<void> => {
    for (const key of keys.keys()) await files.remove(key).catch(onError)
  }
  // A refused or repeated create stores no images.
  const earlier = images.length === 0 ? undefined : await add({ ...run, onlyCheck: true })
  if (earlier !== undefined) return earlier
  // One after the other, since the disk or storage also serves other requests.
  for (const [key, { data, content_type: contentType }] of keys)
    await files.put(key, { bytes: data }, { contentType })
  try {
    const added = (await add(run)) ?? run.id
    if (added !== run.id) await discard()
    return added
  } catch (error) {
    // After another error, the run may have been added.
    if (error instanceof Refusal) await discard()
    throw error
  }
}

/** Returns undefined for a run that was only checked. */
function idOfAdded(added: AddedRun): string | undefined {
  if ('refused' in added)
    throw invalidInput(
      'This Idempotency-Key was used for another request in the last 24 hours. Use a new key for each request.',
    )
  return 'id' in added ? added.id : undefined
}
