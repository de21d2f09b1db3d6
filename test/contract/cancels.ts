/** What every implementation of the store keeps to when runs are canceled. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Store } from '../../src/service/store/index.js'
import type { CrashLimit } from '../../src/service/store/run.js'
import { claimRun, held, newRun, storedOutput } from '../support/index.js'

const LIMIT: CrashLimit = { crashes: 2, failure: { code: 'renderer_crashed', message: 'gave up' } }
const OUTPUT = storedOutput()
const STOPPING = { id: 'one', model: 'rushes/preview-image', owner: 'me', canceledAtMs: 7 }
const PRICE = 5

/** `open` gives an empty store; it is called within each test. */
export function cancelContract(open: () => Store | Promise<Store>): void {
  /** With one worker, `me`, and an account whose key has made these runs. */
  async function createStore(ids: readonly string[]) {
    const store = await open()
    const accountId = await store.ensureAccount({ name: 'default', credits: 100, nowMs: 0 })
    const keyId = await store.addKey({ accountId, hash: 'h', prefix: 'rk_ci', name: 'ci', nowMs: 0 })
    for (const id of ids) await store.addRun(newRun({ id, accountId, keyId, price: PRICE }), () => {})
    const runOf = (id: string) => store.findRun(id, accountId)
    const balances = async () => {
      const [key] = await store.listKeys()
      return { credits: (await store.findAccount(accountId))?.balance, spent: key?.spent, used: key?.used }
    }
    const problems = async () => (await store.verify()).problems
    return { store, accountId, runOf, balances, problems }
  }

  test('a canceled queued run is refunded once, counts against its key, and reaches no worker', async () => {
    const { store, accountId, runOf, balances, problems } = await createStore(['one'])
    const first = await store.cancelRun('one', 7, accountId)
    expect(first).toEqual({ accountId, isCanceled: true, refunded: PRICE })
    expect(await store.cancelRun('one', 8)).toEqual({ accountId, isCanceled: false, refunded: 0 })
    expect(await runOf('one')).toMatchObject({
      status: 'canceled',
      startedAtMs: undefined,
      finishedAtMs: 7,
      failure: { code: 'canceled', message: 'The run was canceled. Its price was refunded.' },
    })
    expect(await balances()).toEqual({ credits: 100, spent: 0, used: 1 })
    expect(await claimRun(store, 'me')).toBeUndefined()
    expect(await store.findStopping('me')).toEqual([])
    expect(await store.settleCanceled('one', 'refunded', 9)).toBeUndefined()
    expect(await problems()).toEqual([])
  })

  test.each([
    { isRefunded: true, credits: 100, message: 'The run was canceled. Its price was refunded.' },
    {
      isRefunded: false,
      credits: 95,
      message:
        'The run was canceled. Its price was not refunded, because the provider may have charged for it.',
    },
  ])('a run in processing is canceled at once, and settled once (refunded: $isRefunded)', async (end) => {
    const { store, runOf, balances, problems } = await createStore(['one'])
    await claimRun(store, 'me')
    expect(await store.cancelRun('one', 7)).toMatchObject({ isCanceled: true, refunded: 0 })
    expect(await runOf('one')).toMatchObject({
      ...{ status: 'processing', finishedAtMs: undefined },
      failure: { code: 'canceling' },
    })
    expect(await store.findStopping('me')).toEqual([STOPPING])
    expect(await problems()).toEqual([])
    const refunded = end.isRefunded ? PRICE : 0
    expect(await store.settleCanceled('one', end.isRefunded ? 'refunded' : 'kept', 9)).toEqual({
      runs: 1,
      refunded,
    })
    expect(await store.settleCanceled('one', end.isRefunded ? 'kept' : 'refunded', 9)).toBeUndefined()
    expect(await store.findStopping('me')).toEqual([])
    const failure = { code: 'canceled', message: end.message }
    expect(await runOf('one')).toMatchObject({ status: 'canceled', startedAtMs: 5, finishedAtMs: 7, failure })
    expect(await balances()).toEqual({ credits: end.credits, spent: 100 - end.credits, used: 1 })
    expect(await problems()).toEqual([])
  })

  test('a worker that does not know the latest job of a canceled run cannot settle it', async () => {
    const { store, balances } = await createStore(['one'])
    await claimRun(store, 'me')
    await store.cancelRun('one', 7)
    const [before] = await store.findStopping('me')
    // Its own worker is about to send the run.
    const job = { intent: { id: 'i', sentAtMs: 1, endpoint: 'model' } }
    expect(await store.saveJob(held('one'), job)).toBe(true)
    expect(await store.settleCanceled('one', 'refunded', 9, before?.stored)).toBeUndefined()
    expect(await store.findStopping('me')).toEqual([{ ...STOPPING, stored: job }])
    expect(await store.settleCanceled('one', 'kept', 9, job)).toEqual({ runs: 1, refunded: 0 })
    expect(await store.saveJob(held('one'), {})).toBe(false)
    expect(await balances()).toMatchObject({ credits: 95 })
  })

  test('a canceled run whose model no worker has stays charged until an operator decides', async () => {
    const { store, runOf, balances, problems } = await createStore(['one'])
    await claimRun(store, 'me')
    await store.cancelRun('one', 7)
    expect(await store.findStopping('me')).toEqual([STOPPING])
    expect(await store.settleCanceled('one', 'unknown', 9)).toEqual({ runs: 1, refunded: 0 })
    expect(await runOf('one')).toMatchObject({ status: 'canceled', failure: { code: 'outcome_unknown' } })
    expect((await store.verify()).unknown).toEqual(['one'])
    const adopt = { handle: { id: 'job_1' } }
    // Its job is then canceled.
    for (let times = 0; times < 2; times++)
      expect(await store.decideUnknown('one', { adopt, nowMs: 10 })).toBe('done')
    const stored = { ...adopt, isNamed: true } as const
    expect(await store.findStopping('me')).toEqual([{ ...STOPPING, canceledAtMs: 10, stored }])
    expect(await store.settleCanceled('one', 'unknown', 11, stored)).toEqual({ runs: 1, refunded: 0 })
    for (let times = 0; times < 2; times++)
      expect(await store.decideUnknown('one', { nowMs: 10 })).toBe('done')
    expect([(await store.verify()).unknown, await problems()]).toEqual([[], []])
    expect(await store.decideUnknown('one', { adopt, nowMs: 12 })).toBe('other')
    expect(await balances()).toMatchObject({ credits: 100 })
  })

  test('a cancel that comes too late returns the run to the queue, and its job is followed', async () => {
    const { store, runOf, balances, problems } = await createStore(['one'])
    await claimRun(store, 'me')
    const job = { handle: { id: 'job_1' } }
    await store.saveJob(held('one'), job)
    await store.cancelRun('one', 7)
    expect(await store.settleCanceled('one', 'resumed', 9, job)).toEqual({ runs: 1, refunded: 0 })
    expect(await runOf('one')).toMatchObject({ status: 'queued', failure: undefined })
    expect(await claimRun(store, 'me')).toMatchObject({ id: 'one', job })
    expect(await store.finishRun(held('one'), [OUTPUT])).toBe(true)
    expect([await balances(), await problems()]).toEqual([{ credits: 95, spent: 5, used: 1 }, []])
  })

  const STEPS = ['claim', 'cancel', 'finish', 'fail', 'crash', 'settle', 'keep', 'release'] as const
  type Step = (typeof STEPS)[number]

  test('the first final state stays and credits match the ledger, in any order of changes', async () => {
    const ids = ['one', 'two']
    const step = fc.tuple(fc.constantFrom(...STEPS), fc.constantFrom(...ids))
    const rounds = fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(rounds, async (rounds) => {
        const { store, runOf, balances, problems } = await createStore(ids)
        const work: Record<Step, (id: string) => Promise<unknown>> = {
          claim: (id) => claimRun(store, 'me', { only: [id] }),
          cancel: (id) => store.cancelRun(id, 7),
          finish: (id) => store.finishRun(held(id), [{ ...OUTPUT, token: id }]),
          fail: (id) => store.failRun(held(id), LIMIT.failure),
          crash: (id) => store.recordCrash(held(id), LIMIT),
          settle: (id) => store.settleCanceled(id, 'refunded', 9),
          keep: (id) => store.settleCanceled(id, 'kept', 9),
          release: () => store.releaseRuns('me'),
        }
        const ended = new Map<string, string>()
        // The steps of a round run at the same time.
        for (const round of rounds) {
          await Promise.all(round.map(([step, id]) => work[step](id)))
          for (const id of ids) {
            const status = (await runOf(id))?.status ?? 'missing'
            expect(status).toBe(ended.get(id) ?? status)
            const output = await store.findOutput(id, OUTPUT.name)
            expect(output !== undefined).toBe(status === 'succeeded')
            if (status !== 'queued' && status !== 'processing') ended.set(id, status)
          }
          expect(await problems()).toEqual([])
        }
        const { credits, spent, used } = await balances()
        expect([Number(credits) + Number(spent), used]).toEqual([100, ids.length])
        await store.close()
      }),
      { numRuns: 25 },
    )
  })
}
