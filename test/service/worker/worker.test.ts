import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { RendererCrashed } from '../../../src/service/engines/engine.js'
import { createLocalFiles } from '../../../src/service/files/local-files.js'
import { PREVIEW_MODELS, type ServedModel } from '../../../src/service/models/served-model.js'
import type { Store } from '../../../src/service/store/index.js'
import type { ClaimRequest, HeldRun, StoredOutput } from '../../../src/service/store/run.js'
import { createWorker } from '../../../src/service/worker/worker.js'
import {
  createInstantEngine,
  createManualClock,
  storedRun,
  temporaryFolder,
  until,
} from '../../support/index.js'

const RUN = storedRun()

type WorkerParts = Parameters<typeof createWorker>[0]
type OneStore = Pick<WorkerParts['store'], 'claimRun'> & Partial<WorkerParts['store']>

/** A worker with this store, in a folder of its own. */
function createOne({
  store,
  isStarted = true,
  ...more
}: { readonly store: OneStore; isStarted?: boolean } & Partial<Omit<WorkerParts, 'store'>>) {
  const clock = createManualClock()
  const root = temporaryFolder()
  const outputsFolder = join(root, 'outputs')
  mkdirSync(outputsFolder)
  const errors: unknown[] = []
  const worker = createWorker({
    store: {
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
    outputs: createLocalFiles(outputsFolder, clock),
    onError: (error) => errors.push(error),
    ...more,
  })
  if (isStarted) worker.start()
  return { worker, clock, root, outputsFolder, errors }
}

/**
 * A worker that renders one run; the store answers as said whether the run is still its own. `failures`: what the database fails
 * with before it takes the result.
 */
async function renderOnce(isOwn: boolean, failures: readonly string[] = []) {
  const waiting = [RUN]
  const codes = [...failures]
  let finish: (outputs: readonly StoredOutput[]) => void = () => {}
  const finished = new Promise<readonly StoredOutput[]>((resolve) => {
    finish = resolve
  })
  const { worker, clock, outputsFolder, errors } = createOne({
    store: {
      claimRun: async () => waiting.shift(),
      async finishRun(_run, outputs) {
        const code = codes.shift()
        if (code !== undefined) throw Object.assign(new Error(code), { code })
        finish(outputs)
        return isOwn
      },
      failRun: async () => (isOwn ? { runs: 1, refunded: 0 } : undefined),
      recordCrash: async () => (isOwn ? { runs: 0, refunded: 0 } : undefined),
    },
  })
  worker.wake(RUN)
  const outputs = await clock.runUntil(finished)
  await clock.runUntil(worker.close())
  return { tokens: outputs.map(({ token }) => token), left: readdirSync(outputsFolder), errors }
}

test('a worker removes the outputs of a run that another worker took over', async () => {
  const { tokens, left, errors } = await renderOnce(false)
  expect(tokens).toHaveLength(1)
  expect([left, errors]).toEqual([[], []])
})

test.each([
  [['SQLITE_FULL', 'SQLITE_BUSY', 'SQLITE_FULL']],
  // More often than a database may refuse the write itself.
  [new Array(12).fill('DATABASE_UNAVAILABLE')],
])('a result that cannot be written (%j) is written as soon as possible', async (codes) => {
  const { tokens, left, errors } = await renderOnce(true, codes)
  expect(left).toEqual(tokens.map((token) => token.split('.')[0]))
  if (codes[0] === 'SQLITE_FULL') expect(errors).toMatchObject(codes.map((code) => ({ code })))
})

/** A worker whose database refuses what `refuses` names, with an error that does not pass by itself. */
function createRefused(refuses: (change: string) => boolean, engine = createInstantEngine()) {
  const waiting = [RUN]
  const changes: string[] = []
  async function change<Result>(name: string, result: Result): Promise<Result> {
    changes.push(name)
    if (refuses(name)) throw Object.assign(new Error(name), { code: 'SQLITE_CONSTRAINT_NOTNULL' })
    return result
  }
  const one = createOne({
    engine,
    store: {
      claimRun: async () => waiting.shift(),
      finishRun: ({ id }) => change(`finish ${id}`, true),
      failRun: ({ id }, { code }) => change(`${code} ${id}`, { runs: 1, refunded: 0 }),
      recordCrash: ({ id }) => change(`crash ${id}`, { runs: 0, refunded: 0 }),
    },
  })
  const add = (id: string) => {
    waiting.push({ ...RUN, id })
    one.worker.wake({ ...RUN, id })
  }
  return { ...one, changes, add, left: () => readdirSync(one.outputsFolder) }
}

const failing = (error: Error) => ({ ...createInstantEngine(), render: () => Promise.reject(error) })

test.each([
  ['finish run_1', createInstantEngine()],
  ['render_failed run_1', failing(new Error('no'))],
  ['crash run_1', failing(new RendererCrashed('no'))],
])('a result that the database refuses ten times (%s) fails the run as not recorded', async (end, engine) => {
  const { worker, clock, changes, errors, left } = createRefused((change) => change === end, engine)
  const ended = 'not_recorded run_1'
  await clock.runUntil(until('the end', () => changes.includes(ended)))
  expect(changes).toEqual([...Array.from({ length: 10 }, () => end), ended])
  await clock.runUntil(worker.close())
  expect(errors.length).toBeGreaterThanOrEqual(10)
  expect(left()).toEqual([])
})

test('a run whose end cannot be written blocks no slot, and is retried while the worker runs', async () => {
  const { worker, clock, changes, add } = createRefused((change) => change.includes('run_1'))
  const tries = () => changes.filter((change) => change.startsWith('not_recorded run_1')).length
  await clock.runUntil(until('the first try', () => tries() > 0))
  add('run_2')
  await clock.runUntil(until('the other run', () => changes.includes('finish run_2')))
  await clock.runUntil(until('the longest pauses', () => tries() >= 5))
  const before = tries()
  const beforeMs = clock.monotonic()
  await clock.runUntil(until('further tries', () => tries() >= before + 12))
  expect(clock.monotonic() - beforeMs).toBeGreaterThan(50_000)
  await clock.runUntil(worker.close())
})

test('a worker stops the render of a run that another worker has, and renews the others every 5 s', async () => {
  const renewed: (readonly string[])[] = []
  const aborted: string[] = []
  const waiting = [RUN, { ...RUN, id: 'run_2' }]
  const { worker, clock } = createOne({
    concurrency: 2,
    engine: {
      render: ({ run, signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            aborted.push(run?.id ?? '')
            reject(signal.reason)
          })
        }),
    },
    store: {
      claimRun: async () => waiting.shift(),
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
  await clock.runUntil(worker.close())
})

test('a worker takes nothing back in its first 5 s, nor for 5 s after it was late', async () => {
  const takenAtMs: number[] = []
  let isStill = false
  let answer = () => {}
  const { worker, clock } = createOne({
    store: {
      claimRun: async () => undefined,
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
  await clock.runUntil(worker.close())
})

test('a create is sent only with 10 s of lease, counted from before the question', async () => {
  let sent = 0
  const saved: unknown[] = []
  const waiting = [RUN]
  const { worker, clock } = createOne({
    engine: {
      async render({ save, signal }) {
        await save?.({ intent: { id: 'i', sentAtMs: 0, endpoint: 'x' } })
        sent++
        return await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    },
    store: {
      claimRun: async () => waiting.shift(),
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
  await clock.runUntil(worker.close())
})

const [STILL] = PREVIEW_MODELS
/** A model of this name, of which a worker renders so many at once. */
const served = (name: string, concurrency?: number): ServedModel => ({
  document: { ...(STILL as ServedModel).document, name },
  concurrency,
})

/** A worker of the models `acme/one` (one at a time) and `acme/many`. Renders last until `end` is called with the run. */
function createShared(
  queue: HeldRun[],
  {
    claimRun,
    ...more
  }: Partial<WorkerParts> & Partial<Pick<OneStore, 'claimRun'>> & { isStarted?: boolean } = {},
) {
  const rendering = new Map<string, () => void>()
  const asked: ClaimRequest[] = []
  const instant = createInstantEngine()
  const one = createOne({
    concurrency: 3,
    models: [served('acme/one', 1), served('acme/many')],
    engine: {
      ...instant,
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
        const at = queue.findIndex(({ model }) => request.models.includes(model))
        return at < 0 ? undefined : queue.splice(at, 1)[0]
      },
      ...(claimRun && { claimRun }),
      finishRun: async ({ id }) => rendering.delete(id),
    },
    ...more,
  })
  const rendered = () => [...rendering.keys()].sort()
  const isRendering = (...ids: readonly string[]) =>
    until(`rendering ${ids}`, () => `${rendered()}` === `${ids}`)
  return { ...one, asked, rendered, isRendering, end: (id: string) => rendering.get(id)?.() }
}

const runsOf = (model: string, ...ids: readonly string[]) => ids.map((id) => storedRun({ id, model }))

test('a worker renders up to the limit of a model, and continues with other models', async () => {
  const queue = [...runsOf('acme/one', 'a', 'b'), ...runsOf('acme/many', 'c', 'd', 'e')]
  const { worker, clock, asked, isRendering, end } = createShared(queue)
  await clock.runUntil(isRendering('a', 'c', 'd'))
  expect(asked.map(({ models }) => models)).toEqual([['acme/one', 'acme/many'], ['acme/many'], ['acme/many']])
  end('a')
  await clock.runUntil(isRendering('b', 'c', 'd'))
  end('c')
  await clock.runUntil(isRendering('b', 'd', 'e'))
  expect(queue).toEqual([])
  await clock.runUntil(worker.close())
})

test('runs on a model server use no slot of the node, so a dead server blocks no other model', async () => {
  const queue = [...runsOf('acme/remote', 'a', 'b', 'c'), ...runsOf('acme/many', 'd', 'e', 'f')]
  const { worker, clock, isRendering, end } = createShared(queue, {
    concurrency: 2,
    models: [{ ...served('acme/remote'), isRemote: true }, served('acme/many')],
  })
  await clock.runUntil(isRendering('a', 'b', 'd', 'e'))
  expect(queue.map(({ id }) => id)).toEqual(['c', 'f'])
  end('d')
  await clock.runUntil(isRendering('a', 'b', 'e', 'f'))
  end('a')
  await clock.runUntil(isRendering('b', 'c', 'e', 'f'))
  await clock.runUntil(worker.close())
})

test('a worker of requested runs claims only these, and only with a free slot of their model', async () => {
  const queue = runsOf('acme/one', 'a', 'waits')
  const asked: ClaimRequest[] = []
  const claimRun = async (request: ClaimRequest) => {
    asked.push(request)
    const at = queue.findIndex(({ id }) => request.only?.includes(id))
    return at < 0 ? undefined : queue.splice(at, 1)[0]
  }
  const { worker, clock, isRendering, end } = createShared([], { isStarted: false, claimRun })
  worker.start('requested')
  await clock.advance(1_000)
  expect(asked).toEqual([])
  worker.wake({ id: 'a', model: 'acme/one' })
  await clock.runUntil(isRendering('a'))
  worker.request({ id: 'waits', model: 'acme/one' })
  worker.request({ id: 'elsewhere', model: 'acme/many' })
  await clock.runUntil(until('the claim', () => asked.some(({ only }) => only?.includes('elsewhere'))))
  expect(asked.map(({ only }) => only)).not.toContainEqual(expect.arrayContaining(['waits']))
  end('a')
  await clock.runUntil(isRendering('waits'))
  await clock.runUntil(worker.close())
})

test('a run that comes back to its own worker ends the first attempt, and the second can be canceled', async () => {
  const events: string[] = []
  let attempts = 0
  let renders = 0
  let isCanceled = false
  const { worker, clock } = createOne({
    concurrency: 2,
    engine: {
      render: ({ signal }) =>
        new Promise((_, reject) => {
          renders++
          signal.addEventListener('abort', () => {
            events.push(signal.reason.name)
            reject(signal.reason)
          })
        }),
    },
    store: {
      claimRun: async () =>
        attempts === renders && attempts < 2 ? { ...RUN, attempt: ++attempts } : undefined,
      renewRuns: async () => new Map([[RUN.id, 2]]),
      findStopping: async () =>
        isCanceled ? [{ id: RUN.id, model: RUN.model, owner: 'w1', canceledAtMs: 0 }] : [],
    },
  })
  await clock.advance(1_000)
  expect(events).toEqual(['JobDetached'])
  isCanceled = true
  await clock.advance(1_000)
  expect(events).toEqual(['JobDetached', 'RunCanceled'])
  await clock.runUntil(worker.close())
})

test('does not start the engine of a run that is canceled before its claim is answered', async () => {
  const events: string[] = []
  let answerClaim = () => {}
  const claimed = new Promise<void>((resolve) => {
    answerClaim = resolve
  })
  const waiting = [RUN]
  const { worker, clock } = createOne({
    engine: {
      async render({ signal }) {
        events.push('started')
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        return []
      },
    },
    store: {
      async claimRun() {
        const run = waiting.shift()
        if (run !== undefined) await claimed
        return run
      },
      findStopping: async () =>
        events.includes('settled') ? [] : [{ id: RUN.id, model: RUN.model, owner: 'w1', canceledAtMs: 0 }],
      async settleCanceled(_id, end) {
        events.push(end === 'refunded' ? 'settled' : 'kept')
        return { runs: 1, refunded: 0 }
      },
      finishRun: async () => false,
    },
  })
  worker.wake(RUN)
  worker.stopCanceled()
  await clock.advance(3_000)
  expect(events).toEqual([])
  answerClaim()
  await until('the run is settled', () => events.length > 0)
  expect(events).toEqual(['settled'])
  await clock.runUntil(worker.close())
})
