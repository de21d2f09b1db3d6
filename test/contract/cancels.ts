/** What every database keeps to when runs are canceled. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { NewRun } from '../../src/service/store/run.js'
import { claimRun, held } from '../support/runs.js'
import { crashLimit, FAILURE, fillStore, type OpenStore, OUTPUT } from './filled-store.js'

const LIMIT = crashLimit(2)
const STOPPING = { id: 'one', model: 'rushes/preview-image', owner: 'me', canceledAtMs: 7 }
const CREDITS = 1_000
const JOB = { handle: { id: 'job_1' } }

export function cancelContract(open: OpenStore): void {
  async function fill() {
    const filled = await fillStore(open, CREDITS)
    const add = (run: Partial<NewRun> = {}) => filled.add({ keyId: filled.keyId, price: 5, ...run })
    return { ...filled, add }
  }

  /** With a canceled run that `me` renders. */
  async function fillStopping() {
    const filled = await fill()
    await filled.add({ id: 'one' })
    await claimRun(filled.store, 'me')
    expect(await filled.store.cancelRun('one', 7)).toMatchObject({ isCanceled: true, refunded: 0 })
    return filled
  }

  test('a worker that does not know the latest job of a canceled run cannot settle it', async () => {
    const { store, balance } = await fillStopping()
    const [before] = await store.findStopping('me')
    // Its own worker is about to send the run.
    const job = { intent: { id: 'i', sentAtMs: 1, endpoint: 'model' } }
    expect(await store.saveJob(held('one'), job)).toBe(true)
    expect(await store.settleCanceled('one', 'refunded', 9, before?.stored)).toBeUndefined()
    expect(await store.findStopping('me')).toEqual([{ ...STOPPING, stored: job }])
    expect(await store.settleCanceled('one', 'kept', 9, job)).toEqual({ runs: 1, refunded: 0 })
    expect(await store.saveJob(held('one'), {})).toBe(false)
    expect(await balance()).toBe(CREDITS - 5)
  })

  test('a canceled run whose model no worker has stays charged until an operator decides', async () => {
    const { store, runOf, balance } = await fillStopping()
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
    expect(await balance()).toBe(CREDITS)
  })

  const STEPS = ['claim', 'cancel', 'finish', 'fail', 'crash', 'settle', 'keep', 'release'] as const

  test('the first final state stays and credits match the ledger, in any order of changes', async () => {
    const { store, add, key, balance, statusOf, problems } = await fill()
    let added = 0
    const step = fc.tuple(fc.constantFrom(...STEPS), fc.nat(1))
    const rounds = fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(rounds, async (rounds) => {
        const ids = [await add(), await add()]
        added += ids.length
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
          await Promise.all(round.map(([step, at]) => work[step](ids[at] ?? '')))
          for (const id of ids) {
            const status = (await statusOf(id)) ?? 'missing'
            expect(status).toBe(ended.get(id) ?? status)
            const output = await store.findOutput(id, OUTPUT.name)
            expect(output !== undefined).toBe(status === 'succeeded')
            if (status !== 'queued' && status !== 'processing') ended.set(id, status)
          }
          expect(await problems()).toEqual([])
        }
        expect(await key()).toMatchObject({ spent: CREDITS - Number(await balance()), used: added })
      }),
      { numRuns: 25 },
    )
  })
}
