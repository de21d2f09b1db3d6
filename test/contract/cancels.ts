/** What every database keeps to when runs are canceled. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { claimRun, held } from '../support/index.js'
import { crashLimit, FAILURE, fillStore, type OpenStore, OUTPUT } from './filled-store.js'

const LIMIT = crashLimit(2)
const STOPPING = { id: 'one', model: 'rushes/preview-image', owner: 'me', canceledAtMs: 7 }
const PRICE = 5
const JOB = { handle: { id: 'job_1' } }

export function cancelContract(open: OpenStore): void {
  /** With runs of the key. */
  async function fill(...ids: readonly string[]) {
    const filled = await fillStore(open)
    const { add, keyId, balance, key } = filled
    for (const id of ids) await add({ id, keyId, price: PRICE })
    const balances = async () => {
      const { spent, used } = (await key()) ?? {}
      return { credits: await balance(), spent, used }
    }
    return { ...filled, balances }
  }

  /** With a canceled run that `me` renders. */
  async function fillStopping(job?: typeof JOB) {
    const filled = await fill('one')
    await claimRun(filled.store, 'me')
    if (job !== undefined) await filled.store.saveJob(held('one'), job)
    expect(await filled.store.cancelRun('one', 7)).toMatchObject({ isCanceled: true, refunded: 0 })
    return filled
  }

  test('a canceled queued run is refunded once, counts against its key, and reaches no worker', async () => {
    const { store, accountId, runOf, balances, problems } = await fill('one')
    const first = await store.cancelRun('one', 7, accountId)
    expect(first).toEqual({ accountId, isCanceled: true, refunded: PRICE })
    expect(await store.cancelRun('one', 8)).toEqual({ accountId, isCanceled: false, refunded: 0 })
    expect(await runOf('one')).toMatchObject({
      ...{ status: 'canceled', startedAtMs: undefined, finishedAtMs: 7 },
      failure: { code: 'canceled', message: 'The run was canceled. Its price was refunded.' },
    })
    expect(await balances()).toEqual({ credits: 100, spent: 0, used: 1 })
    expect(await claimRun(store, 'me')).toBeUndefined()
    expect(await store.findStopping('me')).toEqual([])
    expect(await store.settleCanceled('one', 'refunded', 9)).toBeUndefined()
    expect(await problems()).toEqual([])
  })

  test.each([
    ['refunded', 'kept', PRICE, 'Its price was refunded.'],
    ['kept', 'refunded', 0, 'Its price was not refunded, because the provider may have charged for it.'],
  ] as const)(
    'a run in processing is canceled at once, and its price %s once',
    async (end, other, refunded, says) => {
      const { store, runOf, balances, problems } = await fillStopping()
      expect(await runOf('one')).toMatchObject({
        ...{ status: 'processing', finishedAtMs: undefined },
        failure: { code: 'canceling' },
      })
      expect(await store.findStopping('me')).toEqual([STOPPING])
      expect(await problems()).toEqual([])
      expect(await store.settleCanceled('one', end, 9)).toEqual({ runs: 1, refunded })
      expect(await store.settleCanceled('one', other, 9)).toBeUndefined()
      expect(await store.findStopping('me')).toEqual([])
      const failure = { code: 'canceled', message: `The run was canceled. ${says}` }
      expect(await runOf('one')).toMatchObject({
        status: 'canceled',
        startedAtMs: 5,
        finishedAtMs: 7,
        failure,
      })
      const spent = PRICE - refunded
      expect(await balances()).toEqual({ credits: 100 - spent, spent, used: 1 })
      expect(await problems()).toEqual([])
    },
  )

  test('a worker that does not know the latest job of a canceled run cannot settle it', async () => {
    const { store, balances } = await fillStopping()
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
    const { store, runOf, balances } = await fillStopping()
    expect(await store.findStopping('me')).toEqual([STOPPING])
    expect(await store.settleCanceled('one', 'unknown', 9)).toEqual({ runs: 1, refunded: 0 })
    expect(await runOf('one')).toMatchObject({ status: 'canceled', failure: { code: 'outcome_unknown' } })
    expect((await store.verify()).unknown).toEqual(['one'])
    const decide = (adopt?: typeof JOB) => store.decideUnknown('one', { adopt, nowMs: 10 })
    // Its job is then canceled.
    for (let times = 0; times < 2; times++) expect(await decide(JOB)).toBe('done')
    const stored = { ...JOB, isNamed: true } as const
    expect(await store.findStopping('me')).toEqual([{ ...STOPPING, canceledAtMs: 10, stored }])
    expect(await store.settleCanceled('one', 'unknown', 11, stored)).toEqual({ runs: 1, refunded: 0 })
    for (let times = 0; times < 2; times++) expect(await decide()).toBe('done')
    expect(await store.verify()).toMatchObject({ unknown: [], problems: [] })
    expect(await decide(JOB)).toBe('other')
    expect(await balances()).toMatchObject({ credits: 100 })
  })

  test('a cancel that comes too late returns the run to the queue, and its job is followed', async () => {
    const { store, runOf, balances, problems } = await fillStopping(JOB)
    expect(await store.settleCanceled('one', 'resumed', 9, JOB)).toEqual({ runs: 1, refunded: 0 })
    expect(await runOf('one')).toMatchObject({ status: 'queued', failure: undefined })
    expect(await claimRun(store, 'me')).toMatchObject({ id: 'one', job: JOB })
    expect(await store.finishRun(held('one'), [OUTPUT])).toBe(true)
    expect([await balances(), await problems()]).toEqual([{ credits: 95, spent: 5, used: 1 }, []])
  })

  const STEPS = ['claim', 'cancel', 'finish', 'fail', 'crash', 'settle', 'keep', 'release'] as const

  test('the first final state stays and credits match the ledger, in any order of changes', async () => {
    const ids = ['one', 'two']
    const step = fc.tuple(fc.constantFrom(...STEPS), fc.constantFrom(...ids))
    const rounds = fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(rounds, async (rounds) => {
        const { store, statusOf, balances, problems } = await fill(...ids)
        const work: Record<(typeof STEPS)[number], (id: string) => Promise<unknown>> = {
          claim: (id) => claimRun(store, 'me', { only: [id] }),
          cancel: (id) => store.cancelRun(id, 7),
          finish: (id) => store.finishRun(held(id), [{ ...OUTPUT, token: id }]),
          fail: (id) => store.failRun(held(id), FAILURE),
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
            const status = (await statusOf(id)) ?? 'missing'
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
