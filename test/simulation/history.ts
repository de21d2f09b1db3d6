/**
 * One history of a service: two API nodes, three workers and ten clients in one process, with the real store, endpoints,
 * workers and job engine. A seed decides delays, lost answers, crashes, pauses, cancels and the order of events.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withTimeout } from '../../src/host/abort.js'
import type { Clock } from '../../src/host/clock.js'
import { removeFolder } from '../../src/host/own-folder.js'
import type { JobIntent, StoredJob } from '../../src/service/engines/engine.js'
import { StorageUnavailable, untilStorageAnswers } from '../../src/service/files/contract.js'
import { createEndpoints } from '../../src/service/http/endpoints.js'
import { PREVIEW_MODELS } from '../../src/service/models/served-model.js'
import type { Store } from '../../src/service/store/index.js'
import { outputKey, type StoredRun } from '../../src/service/store/run.js'
import { openSqliteStore } from '../../src/service/store/sqlite/index.js'
import { isDiskUnusable } from '../../src/service/worker/log.js'
import { withGracePeriod } from '../../src/service/worker/render.js'
import { createWorker } from '../../src/service/worker/worker.js'
import { createSimulatedProvider } from './provider.js'
import { createRandom, type Host, type Random, Timeline } from './timeline.js'

const CLIENTS = 10
const WORKERS = 3
const API_NODES = 2
const CREDITS = 1_000
const CHAOS_MS = 45_000
const MAX_CALM_MS = 400_000
const TIME_LIMIT_MS = 60_000
const LOOK_MS = 5_000

const MODELS = PREVIEW_MODELS.filter(({ document }) => document.kind === 'image').map((model) => ({
  ...model,
  mayCost: true,
  isRemote: true,
}))
const MODEL = MODELS[0]?.document.name ?? ''

type RenderRun = NonNullable<Parameters<typeof createWorker>[0]['renderRun']>

/** Returns what is wrong after the history; nothing, if all promises hold. */
export async function playHistory(seed: number, { hasFullDisk = false } = {}): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-history-'))
  const timeline = new Timeline()
  const store = openSqliteStore(join(folder, 'service.db'), { now: () => timeline.nowMs })
  try {
    const disk = createDisk(createRandom(seed + 1_000_000), hasFullDisk)
    return await new History(timeline, createRandom(seed), store, join(folder, 'work'), disk).play()
  } finally {
    await store.close()
    await removeFolder(folder)
  }
}

const READS = /^(find|list|latest|queue|spend|verify|databaseId|close)/
const isDiskFull = (error: unknown) => isDiskUnusable(error) || error instanceof StorageUnavailable

/** Whether writes fail now: for some time, several times, and single ones. Its random numbers are its own. */
function createDisk(random: Random, isEverFull: boolean): (nowMs: number) => boolean {
  const starts = Array.from({ length: isEverFull ? 3 : 0 }, () => random.between(0, CHAOS_MS))
  const ends = starts.map((startMs) => startMs + random.between(100, 15_000))
  return (nowMs) =>
    starts.some((startMs, at) => nowMs >= startMs && nowMs < (ends[at] ?? 0)) ||
    (isEverFull && nowMs < CHAOS_MS && random.chance(0.01))
}

const isOpen = ({ status, failure }: StoredRun): boolean =>
  /queued|processing/.test(status) || failure?.code === 'canceling'

class History {
  readonly provider
  readonly outside: Host = { isDead: false, frozenUntilMs: 0 }
  readonly timeline: Timeline
  readonly clock: Clock
  readonly runs = new Map<string, string>()
  /** By run: the job that was stored last. */
  readonly lastJobs = new Map<string, StoredJob>()
  readonly wrong: string[] = []
  accountId = 0
  isCalm = false

  readonly random: Random
  readonly store: Store
  readonly workFolder: string
  readonly isDiskFull: (nowMs: number) => boolean

  constructor(
    timeline: Timeline,
    random: Random,
    store: Store,
    workFolder: string,
    isFull: (nowMs: number) => boolean,
  ) {
    this.timeline = timeline
    this.clock = timeline.clockOf(this.outside)
    this.random = random
    this.isDiskFull = isFull
    this.store = store
    this.workFolder = workFolder
    this.provider = createSimulatedProvider(random, this.timeline)
  }

  async play(): Promise<readonly string[]> {
    const { store, timeline } = this
    this.accountId = await store.ensureAccount({ name: 'default', credits: CREDITS, nowMs: 0 })
    const keyId = await store.addKey({
      ...{ accountId: this.accountId, hash: 'h', prefix: 'rk', name: 'ci', nowMs: 0 },
    })
    for (let worker = 0; worker < WORKERS; worker++) this.startWorker()
    const clients = Array.from({ length: CLIENTS }, (_, client) => this.startClient(client, keyId))
    await timeline.runUntil(CHAOS_MS)
    this.isCalm = true
    this.provider.calm()
    let isOver = false
    const end = Promise.all(clients)
      .then(() => this.untilEnded())
      .then(() => this.decide())
      // The time limit of an adopted run may pass just before its result was fetched: it is then decided again.
      .then(() => this.decide())
      .catch((error) => void this.wrong.push(String(error?.stack ?? error)))
      .then(() => {
        isOver = true
      })
    await timeline.runUntil(CHAOS_MS + 3 * MAX_CALM_MS, () => isOver)
    if (isOver) await end
    else this.wrong.push('the history does not end')
    await this.check()
    return this.wrong
  }

  /** The store as a node sees it: late, and no longer after a crash. */
  storeOf(host: Host): Store {
    const clock = this.timeline.clockOf(host)
    const never = new Promise<never>(() => {})
    const late = async () => {
      if (!this.isCalm && this.random.chance(0.1)) await clock.sleep(this.random.between(1, 1_500))
    }
    const methods = Object.entries(this.store).map(([name, method]) => [
      name,
      async (...values: readonly never[]) => {
        await late()
        if (host.isDead) return await never
        if (!READS.test(name) && this.isDiskFull(this.timeline.nowMs))
          throw Object.assign(new Error('full'), { code: 'SQLITE_FULL' })
        const result = await (method as (...values: readonly never[]) => Promise<unknown>)(...values)
        const [run, job] = values as readonly unknown[] as [{ readonly id: string }, StoredJob & JobIntent]
        if (name === 'saveJob' && result === true) this.lastJobs.set(run.id, job)
        if (name === 'saveIntent' && result !== undefined) this.lastJobs.set(run.id, { intent: job })
        await late()
        return host.isDead ? await never : result
      },
    ])
    return Object.fromEntries(methods) as Store
  }

  /** A worker that crashes, freezes or stops at a random time, and is started again. */
  startWorker(): void {
    const { random, timeline } = this
    const host: Host = { isDead: false, frozenUntilMs: 0 }
    // A slow process looks at the queue less often.
    const clock = timeline.clockOf(host, (ms) => (ms === 500 ? random.between(500, 6_000) : ms))
    const store = this.storeOf(host)
    const onError = (error: unknown) => {
      if (!host.isDead && !isDiskFull(error))
        this.wrong.push(`a worker reports ${String((error as Error)?.stack ?? error)}`)
    }
    const worker = createWorker({
      ...{ store, clock, models: MODELS, concurrency: 4, onError, workFolder: this.workFolder },
      engine: { ...this.provider.createEngine(host), limitMs: () => TIME_LIMIT_MS },
      references: { load: async () => [] },
      outputs: {
        put: async () => {
          if (this.isDiskFull(timeline.nowMs)) throw new StorageUnavailable('the disk is full')
        },
        remove: async () => {},
      },
      renderRun,
    })
    worker.start()
    if (this.isCalm) return
    const restart = () => void (this.isCalm || this.startWorker())
    const crash = () => {
      host.isDead = true
      this.clock.alarm(random.between(0, 8_000), () => this.startWorker())
    }
    this.clock.alarm(random.between(2_000, 40_000), () => {
      const luck = random.next()
      if (luck < 0.4) crash()
      else if (luck < 0.6) host.frozenUntilMs = timeline.nowMs + random.between(5_000, 100_000)
      else if (luck < 0.8) {
        const stopped = worker.close()
        stopped.catch(onError).then(() => {
          host.isDead = true
          this.startWorker()
        })
      }
      if (luck >= 0.4 && luck < 0.6) restart()
    })
  }

  /** Creates a run with one key until it is accepted, and cancels it or not. */
  async startClient(client: number, keyId: number): Promise<void> {
    const { random, clock, accountId } = this
    const prompt = `fox ${client}`
    const body = Buffer.from(JSON.stringify({ model: MODEL, input: { prompt } }))
    await clock.sleep(random.between(0, 20_000))
    let id: string | undefined
    while (id === undefined) {
      const call = this.api().create({ accountId, keyId }, [body], prompt)
      id = await this.orLost(call.then(({ run }) => run.id))
    }
    this.runs.set(id, prompt)
    if (!random.chance(0.5)) return
    await clock.sleep(random.between(0, 30_000))
    while ((await this.orLost(this.api().cancelRun(accountId, id))) === undefined);
  }

  /** Resolves with undefined if the answer is lost. */
  async orLost<Value>(call: Promise<Value>): Promise<Value | undefined> {
    const isLost = !this.isCalm && this.random.chance(0.15)
    const refused = async (error: unknown) => {
      if (!isDiskFull(error)) throw error
      return void (await this.clock.sleep(1_000))
    }
    const answer = call.then((value) => (isLost ? undefined : value), refused)
    return await Promise.race([answer, this.clock.sleep(10_000).then(() => undefined)])
  }

  readonly apis = Array.from({ length: API_NODES }, () => undefined as Host | undefined)

  /** One of the nodes that answer requests. It may crash in the middle of one. */
  api() {
    const { random } = this
    const at = random.between(0, API_NODES - 1)
    const host = this.apis[at]?.isDead === false ? this.apis[at] : { isDead: false, frozenUntilMs: 0 }
    this.apis[at] = host
    if (!this.isCalm && random.chance(0.1))
      this.clock.alarm(random.between(0, 2_000), () => {
        host.isDead = true
      })
    return createEndpoints({
      store: this.storeOf(host),
      documents: MODELS.map(({ document }) => document),
      clock: this.timeline.clockOf(host),
      rateLimiter: { take: async () => true },
      worker: { wake() {}, request() {}, stopCanceled() {} },
      findKey: async () => undefined,
      files: { put: async () => {}, remove: async () => {} },
      onError: (error) => void (isDiskFull(error) || this.wrong.push(String(error))),
    })
  }

  runOf = async (id: string): Promise<StoredRun> => {
    const run = await this.store.findRun(id, this.accountId)
    if (run === undefined) throw new Error(`${id} is lost`)
    return run
  }

  async untilEnded(): Promise<void> {
    let open = [...this.runs.keys()]
    for (let waitedMs = 0; waitedMs < MAX_CALM_MS; waitedMs += LOOK_MS) {
      const runs = await Promise.all(open.map(this.runOf))
      open = runs.filter(isOpen).map(({ id }) => id)
      if (open.length === 0) return
      await this.clock.sleep(LOOK_MS)
    }
    for (const { id, status } of await Promise.all(open.map(this.runOf)))
      this.wrong.push(`${id} (${this.runs.get(id)}) is ${status} and does not end`)
  }

  /** The operator looks for the jobs of runs with an unknown outcome, and waits for their ends. */
  async decide(): Promise<void> {
    for (const id of (await this.store.verify()).unknown) {
      const job = this.provider.jobs.find(({ input }) => input.prompt === this.runs.get(id))
      const adopt = job && { handle: { id: job.id } }
      const decided = await this.store.decideUnknown(id, { adopt, nowMs: this.clock.now() })
      if (decided !== 'done') this.wrong.push(`the operator cannot decide on ${id}: ${decided}`)
    }
    await this.untilEnded()
  }

  async check(): Promise<void> {
    const { store, provider } = this
    const { problems, unknown } = await store.verify()
    this.wrong.push(...problems, ...unknown.map((id) => `${id} has no decision`))
    const { entries } = await store.listAccountEntries({ accountId: this.accountId, limit: 100_000 })
    for (const [id, prompt] of this.runs) {
      const run = await this.runOf(id)
      const say = (problem: string) => void this.wrong.push(`${prompt}, ${run.status}: ${problem}`)
      const jobs = provider.jobs.filter(({ input }) => input.prompt === prompt)
      if (jobs.length > 1) say(`has ${jobs.length} jobs`)
      const posts = provider.posts.get(prompt) ?? 0
      if (posts > 1 + (provider.refusals.get(prompt) ?? 0)) say(`was sent ${posts} times`)
      for (const { name } of run.outputs)
        if (!jobs.some((job) => job.id === name)) say(`has the output ${name} of another run`)
      const isRefunded = entries.some((entry) => entry.runId === id && entry.kind === 'refund')
      const { handle, intent } = this.lastJobs.get(id) ?? {}
      // A run whose job takes too long fails and is refunded, also if the job was charged.
      const isLate = handle !== undefined && /took longer/.test(run.failure?.message ?? '')
      const charged = jobs.filter(provider.isCharged)
      if (isRefunded && charged.length > 0 && !isLate) say(`was refunded, and ${charged[0]?.id} was charged`)
      const isKept = run.status === 'canceled' && !isRefunded
      if (isKept && handle === undefined && intent === undefined) say('is charged, and was never sent')
    }
    if (this.runs.size < CLIENTS) this.wrong.push('a client has no run')
  }
}

/** Renders without files, so that a history takes little time. */
const renderRun: RenderRun = async (run, references, options, limit) => {
  const { engine, clock, saveJob: save } = options
  const files = await withTimeout((signal) => {
    signal.throwIfAborted()
    const { id, model, kind, input, job: stored } = run
    const job = { kind, input, references, signal, stored, save, folder: '', run: { id, model } }
    return withGracePeriod(engine.render(job), signal, clock)
  }, limit)
  const token = `${run.id}-${Math.random()}`
  const outputs = files.map((file) => ({ ...file, token, bytes: 1, sha256: 'a' }))
  limit.signal.throwIfAborted()
  const waiting = { clock, signal: limit.signal, onError: options.onError }
  for (const output of outputs) {
    const put = () => options.outputs.put(outputKey(output), { bytes: new Uint8Array() })
    await untilStorageAnswers(put, waiting)
  }
  return outputs
}
