import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createLocalFiles } from '../../../src/service/files/local-files.js'
import type { StoredOutput, StoredRun } from '../../../src/service/stored-run.js'
import { createWorker } from '../../../src/service/worker/worker.js'
import { createManualClock } from '../../support/clock.js'
import { createInstantEngine } from '../../support/engines.js'
import { temporaryFolder } from '../../support/service.js'

const RUN: StoredRun = {
  id: 'run_1',
  accountId: 1,
  model: 'rushes/preview-image',
  kind: 'image',
  status: 'processing',
  input: { prompt: 'a fox' },
  outputs: [],
  failure: undefined,
  createdAtMs: 0,
  startedAtMs: 0,
  finishedAtMs: undefined,
}

type WorkerParts = Parameters<typeof createWorker>[0]

/** A worker with this store, in a folder of its own. */
function createOne({ store, ...more }: Pick<WorkerParts, 'store'> & Partial<WorkerParts>) {
  const clock = createManualClock()
  const root = temporaryFolder()
  const outputsFolder = join(root, 'outputs')
  mkdirSync(outputsFolder)
  const errors: unknown[] = []
  let stopWork = async () => {}
  const worker = createWorker({
    store,
    lease: {
      id: 'worker_1',
      acquire: async () => {},
      reapExpiredWorkers: async () => [],
      onLost(listener) {
        stopWork = listener
      },
      release: async () => {},
    },
    clock,
    concurrency: 1,
    engine: createInstantEngine(),
    references: { load: async () => [] },
    workFolder: join(root, 'work'),
    outputs: createLocalFiles(outputsFolder, clock),
    onError: (error) => errors.push(error),
    ...more,
  })
  worker.start()
  return { worker, clock, root, outputsFolder, errors, loseLease: () => stopWork() }
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
  worker.wake(RUN.id)
  const outputs = await clock.runUntil(finished)
  await clock.runUntil(worker.close())
  return { tokens: outputs.map(({ token }) => token), left: readdirSync(outputsFolder), errors }
}

test('the outputs of a run that another worker took over are removed', async () => {
  const { tokens, left, errors } = await renderOnce(false)
  expect(tokens).toHaveLength(1)
  expect([left, errors]).toEqual([[], []])
})

test('the outputs of its own run stay', async () => {
  const { tokens, left, errors } = await renderOnce(true)
  expect([left, errors]).toEqual([tokens, []])
})

test.each([
  [['SQLITE_FULL', 'SQLITE_BUSY', 'SQLITE_FULL']],
  [['DATABASE_UNAVAILABLE', 'DATABASE_UNAVAILABLE']],
])('a result that cannot be written (%j) is written when it can be', async (codes) => {
  const { tokens, left, errors } = await renderOnce(true, codes)
  expect(left).toEqual(tokens)
  if (codes[0] === 'SQLITE_FULL') expect(errors).toMatchObject(codes.map((code) => ({ code })))
})

test('a worker that lost its lease stops what it renders, and renders again with a new one', async () => {
  const written: string[] = []
  let announce = () => {}
  let isListening = false
  const waiting: StoredRun[] = []
  const aborted: string[] = []
  const instant = createInstantEngine()
  let isHanging = true
  const { worker, clock, root, errors, loseLease } = createOne({
    store: {
      claimRun: async () => waiting.shift(),
      async finishRun({ id }) {
        written.push(`${id} finished`)
        return true
      },
      async failRun({ id }) {
        written.push(`${id} failed`)
        return { runs: 1, refunded: 0 }
      },
      recordCrash: async () => undefined,
      onQueued(listener) {
        announce = listener
        isListening = true
        return () => {
          isListening = false
        }
      },
    },
    engine: {
      ...instant,
      render(job) {
        if (!isHanging) return instant.render(job)
        return new Promise((_, reject) => {
          job.signal.addEventListener('abort', () => {
            aborted.push(job.run?.id ?? '')
            reject(job.signal.reason)
          })
        })
      },
    },
  })
  waiting.push({ ...RUN, id: 'lost' })
  // Another process has queued it.
  announce()
  await expect.poll(() => readdirSync(root)).toContain('work')
  await expect.poll(() => readdirSync(join(root, 'work'))).toHaveLength(1)
  await clock.runUntil(loseLease())
  expect([aborted, written]).toEqual([['lost'], []])
  isHanging = false
  waiting.push({ ...RUN, id: 'next' })
  announce()
  await expect.poll(() => written).toEqual(['next finished'])
  await clock.runUntil(worker.close())
  expect([isListening, errors]).toEqual([false, []])
})
