/** What a worker does with its runs, beside a store that answers as the test says. */
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { untilAborted } from '../../../src/host/abort.js'
import { type Engine, RendererCrashed, type RenderJob } from '../../../src/service/engines/engine.js'
import { createLocalFiles } from '../../../src/service/files/local-files.js'
import { PREVIEW_MODELS, type ServedModel } from '../../../src/service/models/served-model.js'
import type { Store } from '../../../src/service/store/index.js'
import type { ClaimRequest, HeldRun } from '../../../src/service/store/run.js'
import { createWorker } from '../../../src/service/worker/worker.js'
import {
  createInstantEngine,
  createManualClock,
  temporaryFolder,
  until,
  whenOver,
} from '../../support/index.js'
import { storedRun } from '../../support/runs.js'

const RUN = storedRun()

type WorkerParts = Parameters<typeof createWorker>[0]
type StoreParts = Partial<WorkerParts['store']>

interface OneOptions extends Partial<Omit<WorkerParts, 'store'>> {
  readonly store?: StoreParts
  /** The queue. */
  readonly runs?: HeldRun[]
  readonly isStarted?: boolean
}

/** A worker in a folder of its own, which closes when the test ends. */
function createOne({ store, runs = [], isStarted = true, ...more }: OneOptions = {}) {
  const clock = createManualClock()
  const root = temporaryFolder()
  const outputsFolder = join(root, 'outputs')
  mkdirSync(outputsFolder)
  const errors: unknown[] = []
  const worker = createWorker({
    store: {
      claimRun: async () => runs.shift(),
      finishRun: async () => true,
      failRun: async () => undefined,
      recordCrash: async () => undefined,
      saveJob: async () => true,
      saveIntent: async () => 15_000,
      renewRuns: async (_worker, ids) => new Map(ids.map((id) => [id, 1])),
      takeBack: async () => ({ runs: 0, refunded: 0 }),
      releaseRuns: async () => {},
      findOwners: async () => [],
      findOthers: async () => [],
      findModelOf: async () => undefined,
      findStopping: async () => [],
      settleCanceled: async () => undefined,
      ...store,
    } as Store,
    clock,
    concurrency: 1,
    engine: createInstantEngine(),
    models: PREVIEW_MODELS,
    references: { load: async () => [] },
    workFolder: join(root, 'work'),
    outputs: createLocalFiles(outputsFolder),
    onError: (error) => errors.push(error),
    ...more,
  })
  whenOver(() => clock.runUntil(worker.close()))
  if (isStarted) worker.start()
  return { worker, clock, errors, outputs: () => readdirSync(outputsFolder) }
}

/** An engine that renders until its job is aborted. */
const endless = (onStart: (job: RenderJob) => void, onAbort: typeof onStart = () => {}): Engine => ({
  async render(job) {
    onStart(job)
    await untilAborted(job.signal)
    onAbort(job)
    throw job.signal.reason
  },
})

test('a worker removes the outputs of a run that another worker took over', async () => {
  let tokens: readonly string[] = []
  const { clock, errors, outputs } = createOne({
    runs: [RUN],
    store: {
      async finishRun(_run, stored) {
        tokens = stored.map(({ token }) => token)
        return false
      },
    },
  })
  await clock.runUntil(until('the end', () => tokens.length === 1 && outputs().length === 0))
  expect(errors).toEqual([])
})

test.each([
  [['SQLITE_FULL', 'SQLITE_BUSY', 'SQLITE_FULL']],
  // More often than a database may refuse the write itself.
  [new Array(12).fill('DATABASE_UNAVAILABLE')],
])('a result that cannot be written (%j) is written as soon as possible', async (codes) => {
  const failures = [...codes]
  let tokens: readonly string[] = []
  const { clock, errors, outputs } = createOne({
    runs: [RUN],
    store: {
      async finishRun(_run, stored) {
        const code = failures.shift()
        if (code !== undefined) throw Object.assign(new Error(code), { code })
        tokens = stored.map(({ token }) => token)
        return true
      },
    },
  })
  await clock.runUntil(until('the end', () => tokens.length > 0))
  expect(outputs()).toEqual(tokens.map((token) => token.split('.')[0]))
  if (codes[0] === 'SQLITE_FULL') expect(errors).toMatchObject(codes.map((code) => ({ code })))
})

/** A worker whose database refuses the changes that `refuses` names, with an error that does not pass by itself. */
function createRefused(refuses: (change: string) => boolean, engine: Engine = createInstantEngine()) {
  const runs = [RUN]
  const changes: string[] = []
  async function change<Result>(name: string, result: Result): Promise<Result> {
    changes.push(name)
    if (refuses(name)) throw Object.assign(new Error(name), { code: 'SQLITE_CONSTRAINT_NOTNULL' })
    return result
  }
  const one = createOne({
    engine,
    runs,
    store: {
      finishRun: ({ id }) => change(`finish ${id}`, true),
      failRun: ({ id }, { code }) => change(`${code} ${id}`, { runs: 1, refunded: 0 }),
      recordCrash: ({ id }) => change(`crash ${id}`, { runs: 0, refunded: 0 }),
    },
  })
  return { ...one, runs, changes }
}

const failing = (error: Error): Engine => ({ render: () => Promise.reject(error) })

test.each([
  ['finish run_1', createInstantEngine()],
  ['render_failed run_1', failing(new Error('no'))],
  ['crash run_1', failing(new RendererCrashed('no'))],
])('a result that the database refuses ten times (%s) fails the run as not recorded', async (end, engine) => {
  const { clock, changes, errors, outputs } = createRefused((change) => change === end, engine)
  const ended = 'not_recorded run_1'
  await clock.runUntil(until('the end', () => changes.includes(ended) && outputs().length === 0))
  expect(changes).toEqual([...Array.from({ length: 10 }, () => end), ended])
  expect(errors.length).toBeGreaterThanOrEqual(10)
})

test('a run whose end cannot be written blocks no slot, and is retried while the worker runs', async () => {
  const { clock, changes, runs } = createRefused((change) => change.includes('run_1'))
  const tries = () => changes.filter((change) => change.startsWith('not_recorded run_1')).length
  await clock.runUntil(until('the first try', () => tries() > 0))
  runs.push({ ...RUN, id: 'run_2' })
  await clock.runUntil(until('the other run', () => changes.includes('finish run_2')))
  await clock.runUntil(until('the longest pauses', () => tries() >= 5))
  const before = tries()
  const beforeMs = clock.monotonic()
  await clock.runUntil(until('further tries', () => tries() >= before + 12))
  expect(clock.monotonic() - beforeMs).toBeGreaterThan(50_000)
})

test('a worker stops the render of a run that another worker has, and renews the others every 5 s', async () => {
  const renewed: (readonly string[])[] = []
  const aborted: unknown[] = []
  const { clock } = createOne({
    concurrency: 2,
    runs: [RUN, { ...RUN, id: 'run_2' }],
    engine: endless(
      () => {},
      ({ run }) => aborted.push(run?.id),
    ),
    store: {
      async renewRuns(_worker, ids) {
        renewed.push(ids)
        return new Map([['run_2', 1]])
      },
    },
  })
  await clock.advance(5_000)
  expect([renewed, aborted]).toEqual([[['run_1', 'run_2']], ['run_1']])
  await clock.advance(5_000)
  expect([renewed.at(-1), aborted]).toEqual([['run_2'], ['run_1']])
})

test('a worker takes nothing back in its first 5 s, nor for 5 s after it was late', async () => {
  const takenAtMs: number[] = []
  let isStill = false
  let answer = () => {}
  const { clock } = createOne({
    store: {
      async renewRuns() {
        if (isStill) await new Promise<void>((resolve) => (answer = resolve))
        return new Map()
      },
      async takeBack() {
        takenAtMs.push(clock.monotonic())
        return { runs: 0, refunded: 0 }
      },
    },
  })
  const startMs = clock.monotonic()
  await clock.advance(8_000)
  expect(Number(takenAtMs[0]) - startMs).toBeGreaterThanOrEqual(5_000)
  isStill = true
  await clock.advance(12_000)
  takenAtMs.length = 0
  isStill = false
  answer()
  const answeredMs = clock.monotonic()
  await clock.advance(8_000)
  expect(Number(takenAtMs[0]) - answeredMs).toBeGreaterThanOrEqual(5_000)
})

test('a create is sent only with 10 s of lease, counted from before the question', async () => {
  let sent = 0
  const saved: unknown[] = []
  const { clock } = createOne({
    runs: [RUN],
    engine: {
      async render(job) {
        await job.save?.({ intent: { id: 'i', sentAtMs: 0, endpoint: 'x' } })
        sent++
        return []
      },
    },
    store: {
      async saveIntent() {
        await clock.sleep(4_000)
        return 13_000
      },
      async saveJob(_claimed, job) {
        saved.push(job)
        return true
      },
    },
  })
  await clock.advance(12_000)
  expect([sent, saved]).toEqual([0, [{}, {}]])
})

const [STILL] = PREVIEW_MODELS
/** A model of this name, of which a worker renders so many at once. */
const served = (name: string, concurrency?: number): ServedModel => ({
  document: { ...(STILL as ServedModel).document, name },
  concurrency,
})

/** A worker of the models `acme/one` (one at a time) and `acme/many`. Renders last until `end` is called with the run. */
function createShared(queue: HeldRun[], { store, ...more }: OneOptions = {}) {
  const rendering = new Map<string, () => void>()
  const asked: ClaimRequest[] = []
  const instant = createInstantEngine()
  const one = createOne({
    concurrency: 3,
    models: [served('acme/one', 1), served('acme/many')],
    engine: {
      async render(job) {
        await new Promise<void>((resolve) => {
          rendering.set(job.run?.id ?? '', resolve)
          job.signal.addEventListener('abort', () => resolve())
        })
        return await instant.render(job)
      },
    },
    store: {
      async claimRun(request) {
        asked.push(request)
        const at = queue.findIndex(
          ({ id, model }) => request.only?.includes(id) ?? request.models.includes(model),
        )
        return at < 0 ? undefined : queue.splice(at, 1)[0]
      },
      finishRun: async ({ id }) => rendering.delete(id),
    },
    ...more,
  })
  const isRendering = async (...ids: readonly string[]) =>
    await one.clock.runUntil(until(`rendering ${ids}`, () => `${[...rendering.keys()].sort()}` === `${ids}`))
  return { ...one, asked, isRendering, end: (id: string) => rendering.get(id)?.() }
}

const runsOf = (model: string, ...ids: readonly string[]) => ids.map((id) => storedRun({ id, model }))

test('a worker renders up to the limit of a model, and continues with other models', async () => {
  const queue = [...runsOf('acme/one', 'a', 'b'), ...runsOf('acme/many', 'c', 'd', 'e')]
  const { asked, isRendering, end } = createShared(queue)
  await isRendering('a', 'c', 'd')
  expect(asked.map(({ models }) => models)).toEqual([['acme/one', 'acme/many'], ['acme/many'], ['acme/many']])
  end('a')
  await isRendering('b', 'c', 'd')
  end('c')
  await isRendering('b', 'd', 'e')
  expect(queue).toEqual([])
})

test('runs on a model server use no slot of the node, so a dead server blocks no other model', async () => {
  const queue = [...runsOf('acme/remote', 'a', 'b', 'c'), ...runsOf('acme/many', 'd', 'e', 'f')]
  const { isRendering, end } = createShared(queue, {
    concurrency: 2,
    models: [{ ...served('acme/remote'), isRemote: true }, served('acme/many')],
  })
  await isRendering('a', 'b', 'd', 'e')
  expect(queue.map(({ id }) => id)).toEqual(['c', 'f'])
  end('d')
  await isRendering('a', 'b', 'e', 'f')
  end('a')
  await isRendering('b', 'c', 'e', 'f')
})

test('a worker of requested runs claims only these, and only with a free slot of their model', async () => {
  const queue = runsOf('acme/one', 'a', 'waits')
  const { worker, clock, asked, isRendering, end } = createShared(queue, { isStarted: false })
  worker.start('requested')
  await clock.advance(1_000)
  expect(asked).toEqual([])
  worker.wake({ id: 'a', model: 'acme/one' })
  await isRendering('a')
  worker.request({ id: 'waits', model: 'acme/one' })
  worker.request({ id: 'elsewhere', model: 'acme/many' })
  await clock.runUntil(until('the claim', () => asked.some(({ only }) => only?.includes('elsewhere'))))
  expect(asked.map(({ only }) => only)).not.toContainEqual(expect.arrayContaining(['waits']))
  end('a')
  await isRendering('waits')
})

const STOPPING = { id: RUN.id, model: RUN.model, owner: 'w1', canceledAtMs: 0 }

test('a run that comes back to its own worker ends the first attempt, and the second can be canceled', async () => {
  const events: string[] = []
  let attempts = 0
  let renders = 0
  let isCanceled = false
  const { clock } = createOne({
    concurrency: 2,
    engine: endless(
      () => void renders++,
      ({ signal }) => events.push(signal.reason.name),
    ),
    store: {
      claimRun: async () =>
        attempts === renders && attempts < 2 ? { ...RUN, attempt: ++attempts } : undefined,
      renewRuns: async () => new Map([[RUN.id, 2]]),
      findStopping: async () => (isCanceled ? [STOPPING] : []),
    },
  })
  await clock.advance(1_000)
  expect(events).toEqual(['JobDetached'])
  isCanceled = true
  await clock.advance(1_000)
  expect(events).toEqual(['JobDetached', 'RunCanceled'])
})

test('does not start the engine of a run that is canceled before its claim is answered', async () => {
  const events: string[] = []
  let answerClaim = () => {}
  const claimed = new Promise<void>((resolve) => {
    answerClaim = resolve
  })
  const runs = [RUN]
  const { worker, clock } = createOne({
    engine: endless(() => events.push('started')),
    store: {
      async claimRun() {
        const run = runs.shift()
        if (run !== undefined) await claimed
        return run
      },
      findStopping: async () => (events.includes('settled') ? [] : [STOPPING]),
      async settleCanceled(_id, end) {
        events.push(end === 'refunded' ? 'settled' : 'kept')
        return { runs: 1, refunded: 0 }
      },
    },
  })
  worker.wake(RUN)
  worker.stopCanceled()
  await clock.advance(3_000)
  expect(events).toEqual([])
  answerClaim()
  await until('the run is settled', () => events.length > 0)
  expect(events).toEqual(['settled'])
})
