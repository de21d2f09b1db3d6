/** What every database keeps to about runs and the queue. */
import { describe, expect, test } from 'vitest'
import { LOCAL_STATUSES, type LocalStatus } from '../../src/protocol/run-state.js'
import type { StoredJob } from '../../src/service/engines/engine.js'
import type { Store } from '../../src/service/store/index.js'
import type { ClaimRequest } from '../../src/service/store/run.js'
import { claimRun, held } from '../support/runs.js'
import { CRASHED, crashLimit, FAILURE, fillStore, type OpenStore, OUTPUT } from './filled-store.js'

const LIMIT = crashLimit(3)

/** The legal moves. A run returns to `queued` if its renderer ends before the run does. */
const MOVES: Readonly<Record<LocalStatus, readonly LocalStatus[]>> = {
  queued: ['processing', 'canceled'],
  processing: ['succeeded', 'failed', 'queued', 'canceled'],
  succeeded: [],
  failed: [],
  canceled: [],
}

/** Every function that moves a run, by what it makes of it. */
const MOVERS: Readonly<Record<LocalStatus, (store: Store, id: string) => Promise<unknown>>> = {
  queued: (store, id) => store.recordCrash(held(id), LIMIT),
  processing: (store, id) => claimRun(store, 'me', { only: [id] }),
  succeeded: (store, id) => store.finishRun(held(id), [{ ...OUTPUT, token: id }]),
  failed: (store, id) => store.failRun(held(id), FAILURE),
  canceled: async (store, id) => {
    await store.cancelRun(id, 9)
    await store.settleCanceled(id, 'refunded', 9)
  },
}

const INTENT = { id: 'i', sentAtMs: 1, endpoint: 'videos' }
const HANDLE = { handle: { id: 'job_1', urls: { get: 'https://a.test/1' } } } as const
const UNKNOWN = { code: 'outcome_unknown', message: 'perhaps' }

export function storeContract(open: OpenStore): void {
  const fill = () => fillStore(open)

  test('a run changes its status only by legal moves', async () => {
    const { store, add, statusOf, runOf } = await fill()
    for (const from of LOCAL_STATUSES)
      for (const to of LOCAL_STATUSES) {
        const id = await add()
        if (from !== 'queued') await MOVERS.processing(store, id)
        if (MOVES[from].length === 0) await MOVERS[from](store, id)
        expect(await statusOf(id)).toBe(from)
        await MOVERS[to](store, id)
        expect(await statusOf(id), `from ${from} to ${to}`).toBe(MOVES[from].includes(to) ? to : from)
        if (from === 'processing' && to === 'queued')
          expect(await runOf(id)).toMatchObject({ startedAtMs: undefined, failure: undefined })
      }
  })

  test('only the owner finishes a run, once, and publishes its outputs', async () => {
    const { store, add, accountId, runOf } = await fill()
    const id = await add()
    await claimRun(store, 'me')
    expect(await store.finishRun(held(id, 'other'), [OUTPUT])).toBe(false)
    expect(await store.failRun(held(id, 'other'), FAILURE)).toBeUndefined()
    expect(await store.recordCrash(held(id, 'other'), LIMIT)).toBeUndefined()
    expect(await store.findOutput('t', 'a.png')).toBeUndefined()
    // A repeat after a lost response, and another render.
    for (let times = 0; times < 2; times++) expect(await store.finishRun(held(id), [OUTPUT])).toBe(true)
    expect(await store.finishRun(held(id), [{ ...OUTPUT, token: 'u' }])).toBe(false)
    expect(await store.findOutput('u', 'a.png')).toBeUndefined()
    expect(await store.findOutput('t', 'a.png')).toEqual(OUTPUT)
    expect(await store.findOutput('t', 'b.png')).toBeUndefined()
    expect(await runOf(id)).toMatchObject({ outputs: [OUTPUT], startedAtMs: 5, finishedAtMs: 9 })
    expect(await store.findRun(id, accountId + 1)).toBeUndefined()
  })

  test('concurrent claims get different runs, each once', async () => {
    const { store, add } = await fill()
    const ids: string[] = []
    for (let n = 0; n < 30; n++) ids.push(await add())
    const claimed = await Promise.all(
      Array.from({ length: 40 }, (_, n) => claimRun(store, n % 2 === 0 ? 'me' : 'other')),
    )
    expect(claimed.flatMap((run) => run?.id ?? []).sort()).toEqual(ids.sort())
  })

  test.each([
    ['a zero character', { prompt: 'a\u0000b', '\u0000': '\u0000' }],
    ['half of a surrogate pair', { prompt: '\ud800 and \udc00', list: ['\udfff'] }],
    ['large and small numbers', { big: 1e308, small: 5e-324, precise: 0.1, seed: 2n ** 64n - 1n }],
    ['JSON as a text', { prompt: '{"a":"\\u0000"}', nested: [[{ a: null }], [], {}] }],
    ['the names of an object', { __proto__x: 1, constructor: 'x', toString: [true, false] }],
  ])('an input is stored unchanged: %s', async (_, input) => {
    const { store, add, runOf } = await fill()
    const id = await add({ input })
    expect((await runOf(id))?.input).toEqual(input)
    expect((await claimRun(store, 'me'))?.input).toEqual(input)
    // The text of an error may have anything, and is for people.
    await store.failRun(held(id), { ...FAILURE, message: 'stderr: \u0000\ud800\n' })
    expect((await runOf(id))?.failure).toEqual({ ...FAILURE, message: expect.stringMatching(/^stderr: /) })
  })

  test('several outputs of a run keep their order, and one that the database refuses changes nothing', async () => {
    const { store, add, runOf, statusOf } = await fill()
    const id = await add()
    await claimRun(store, 'me')
    const outputs = ['b', 'a', 'ä,{}"\\', 'c'].map((name, at) => ({ ...OUTPUT, name, bytes: 2 ** 33 + at }))
    const damaged = { ...OUTPUT, name: 'd', sha256: null as never }
    await expect(store.finishRun(held(id), [...outputs, damaged])).rejects.toThrow()
    expect(await statusOf(id)).toBe('processing')
    expect(await store.findOutput(OUTPUT.token, 'b')).toBeUndefined()
    expect(await store.finishRun(held(id), outputs)).toBe(true)
    expect((await runOf(id))?.outputs).toEqual(outputs)
  })

  test('a claim that names runs gets only the oldest of these', async () => {
    const { store, add } = await fill()
    const [first, second, third] = [await add(), await add(), await add()]
    expect(await claimRun(store, 'me', { only: ['unknown'] })).toBeUndefined()
    expect(await claimRun(store, 'me', { only: [third, second] })).toMatchObject({ id: second })
    expect(await claimRun(store, 'me', { only: [second] })).toBeUndefined()
    expect(await claimRun(store, 'me')).toMatchObject({ id: first })
  })

  /** Two accounts. */
  async function fillQueue() {
    const filled = await fill()
    const { store, accountId } = filled
    const accounts = [accountId, await store.ensureAccount({ name: 'other', credits: 100, nowMs: 0 })]
    const add = (id: string, model: string, account = 0) =>
      filled.add({ id, model, accountId: accounts[account] ?? 0 })
    const claim = async (models: readonly string[], request: Partial<ClaimRequest> = {}) =>
      (await claimRun(store, 'me', { models, ...request }))?.id
    return { ...filled, add, addRun: filled.add, claim }
  }

  test('a worker gets only runs of its models, however many others are ahead of them', async () => {
    const { add, claim, statusOf } = await fillQueue()
    for (let n = 0; n < 5; n++) await add(`other_${n}`, 'acme/other', n % 2)
    await add('mine', 'acme/mine', 1)
    expect(await claim([])).toBeUndefined()
    expect(await claim(['acme/none', 'acme/mine%', 'ACME/MINE', "'"])).toBeUndefined()
    expect(await claim(['acme/none', 'acme/mine'])).toBe('mine')
    expect(await claim(['acme/mine'])).toBeUndefined()
    expect(await statusOf('other_0')).toBe('queued')
    expect(await claim(['acme/mine'], { only: ['other_0'] })).toBeUndefined()
    expect(await claim(['acme/other', 'acme/mine'])).toBe('other_0')
  })

  test('the accounts of a model are served in turn, also one that comes later', async () => {
    const { add, claim } = await fillQueue()
    for (const id of ['a1', 'a2', 'a3', 'a4']) await add(id, 'acme/one')
    for (const id of ['b1', 'b2']) await add(id, 'acme/one', 1)
    const order: unknown[] = []
    for (let n = 0; n < 7; n++) {
      if (n === 3) await add('b3', 'acme/one', 1)
      order.push(await claim(['acme/one']))
    }
    expect(order).toEqual(['a1', 'b1', 'a2', 'b2', 'a3', 'b3', 'a4'])
  })

  test('a run that comes back goes to the head of the queue', async () => {
    const { store, add, claim } = await fillQueue()
    for (const id of ['a1', 'a2', 'a3']) await add(id, 'acme/one')
    for (let n = 0; n < 2; n++) await claim(['acme/one'])
    await store.recordCrash(held('a1'), LIMIT)
    expect(await claim(['acme/one'])).toBe('a1')
  })

  test('a run carries its model, and a worker finds the models that it does not have', async () => {
    const { store, add, addRun, claim } = await fillQueue()
    const carried = { hash: 'h1', json: '{"name":"acme/carried"}' }
    for (const id of ['one', 'two']) await addRun({ id, model: 'acme/carried', carried })
    await add('three', 'acme/plain')
    await add('four', 'acme/own')
    const [one, three] = [
      { id: 'one', model: 'acme/carried', document: carried.json },
      { id: 'three', model: 'acme/plain' },
    ]
    const byModel = async (only?: readonly string[]) =>
      (await store.findOthers(['acme/own'], only)).toSorted((a, b) => (a.model < b.model ? -1 : 1))
    expect(await byModel()).toEqual([one, three])
    expect(await byModel(['two', 'four'])).toEqual([{ ...one, id: 'two' }])
    expect([await store.findModelOf('one'), await store.findModelOf('none')]).toEqual([one, undefined])
    expect(await claim(['acme/carried'])).toBe('one')
    expect(await claimRun(store, 'me', { models: ['acme/carried'] })).toMatchObject({
      document: carried.json,
    })
    expect((await claimRun(store, 'me', { models: ['acme/plain'] }))?.document).toBeUndefined()
    await store.cancelRun('one', 7)
    expect(await store.findStopping('me')).toMatchObject([one])
    expect(await store.findOthers([])).toMatchObject([{ id: 'four' }])
  })

  test('a crash recorded again after a lost response does not count against the next attempt', async () => {
    const { store, add, statusOf } = await fill()
    const [id, other] = [await add(), await add()]
    for (let runs = 0; runs < 2; runs++) await claimRun(store, 'me')
    const crashed = held(id)
    expect(await store.recordCrash(crashed, LIMIT)).toEqual({ runs: 0, refunded: 0 })
    expect(await statusOf(other)).toBe('processing')
    expect(await claimRun(store, 'me', { nowMs: 6 })).toMatchObject({ id, startedAtMs: 6 })
    expect(await store.recordCrash(crashed, LIMIT)).toBeUndefined()
    expect(await statusOf(id)).toBe('processing')
    // The second of three.
    expect(await store.recordCrash(held(id), LIMIT)).toEqual({ runs: 0, refunded: 0 })
  })

  describe('the job of a run', () => {
    test('can be stored only by its owner, and comes with each later claim', async () => {
      const { store, add } = await fill()
      const id = await add()
      expect(await store.saveIntent(held(id), INTENT)).toBeUndefined()
      expect((await claimRun(store, 'me'))?.job).toBeUndefined()
      expect(await store.saveJob(held(id, 'other'), HANDLE)).toBe(false)
      for (let times = 0; times < 2; times++)
        expect(await store.saveIntent(held(id), INTENT)).toBeGreaterThan(10_000)
      expect(await store.saveIntent(held(id), { ...INTENT, id: 'another' })).toBeUndefined()
      expect(await store.saveJob(held(id), HANDLE, INTENT)).toBe(true)
      await store.releaseRuns('me')
      expect((await claimRun(store, 'other'))?.job).toEqual(HANDLE)
    })

    test('is stored by its intent, whoever has the run', async () => {
      const { store, add } = await fill()
      const id = await add()
      await claimRun(store, 'me')
      await store.saveIntent(held(id), INTENT)
      const stranger = held(id, 'stranger')
      expect(await store.saveJob(stranger, HANDLE, { ...INTENT, id: 'another' })).toBe(false)
      expect(await store.saveJob(stranger, HANDLE, INTENT)).toBe(true)
    })

    test('keeps the run with a worker that stops, while the answer to its create is open', async () => {
      const { store, add, statusOf } = await fill()
      const [open, followed] = [await add(), await add()]
      for (const id of [open, followed]) {
        await claimRun(store, 'me')
        await store.saveIntent(held(id), INTENT)
      }
      await store.saveJob(held(followed), HANDLE, INTENT)
      await store.releaseRuns('me')
      expect([await statusOf(open), await statusOf(followed)]).toEqual(['processing', 'queued'])
    })
  })

  describe('a run whose outcome is unknown', () => {
    async function unknown(price = 7) {
      const filled = await fill()
      const { store, add } = filled
      await add({ id: 'paid', price })
      await claimRun(store, 'me')
      expect(await store.failRun(held('paid'), UNKNOWN)).toEqual({ runs: 1, refunded: 0 })
      /** Decides twice: a repeat changes nothing. */
      const decide = async (adopt?: StoredJob) => {
        for (let times = 0; times < 2; times++)
          expect(await store.decideUnknown('paid', { adopt, nowMs: 9 })).toBe('done')
      }
      return { ...filled, decide }
    }

    test.each([
      [7, 3],
      [0, 1],
    ])('can be refunded once, also if it is free: %i', async (price, entries) => {
      const { store, decide, runOf } = await unknown(price)
      await decide()
      expect(await store.decideUnknown('paid', { adopt: HANDLE, nowMs: 9 })).toBe('other')
      expect(await runOf('paid')).toMatchObject({ failure: { code: 'refunded' } })
      expect(await store.verify()).toMatchObject({ problems: [], unknown: [], credits: 100, entries })
    })

    test('keeps the outputs of a job that is named after its files were removed, until these are old', async () => {
      const { store, decide, accountId } = await unknown()
      const expire = async () => (await store.expireFiles(Number.MAX_SAFE_INTEGER)).map(({ id }) => id)
      expect(await expire()).toEqual(['paid'])
      await decide(HANDLE)
      // Of a sweep that was removing them meanwhile.
      await store.filesRemoved(['paid'])
      await claimRun(store, 'me')
      await store.finishRun(held('paid'), [OUTPUT])
      expect(await store.findRuns(['paid'], accountId)).toMatchObject([{ isRemoved: false }])
      expect(await expire()).toEqual(['paid'])
    })

    const PAID = { id: 'job_1', place: { type: 'fal', origin: 'https://queue.fal.run', costs: true } }
    test.each<[what: string, job: StoredJob, isUnknown: boolean]>([
      ['a create in flight', { intent: INTENT }, true],
      ['a paid job', { handle: PAID }, true],
      ['a paid job that has ended without a result', { handle: PAID, end: 'over' }, false],
      ['a job that an operator has named', { handle: PAID, end: 'over', isNamed: true }, true],
      ['a paid job that was canceled and charged', { handle: PAID, end: 'charged' }, false],
      ['a free job', { handle: { ...PAID, place: { ...PAID.place, costs: false } } }, false],
    ])(
      'is one that ended with %s, if that may continue; else the run is refunded',
      async (_, job, isUnknown) => {
        const { store, add, runOf } = await fill()
        const ends = {
          fails: () => store.failRun(held('fails'), CRASHED),
          crashes: async () => {
            for (let crash = 1; crash < 20; crash++) {
              await store.recordCrash(held('crashes'), LIMIT)
              expect(await claimRun(store, 'me')).toMatchObject({ id: 'crashes', job })
            }
            await store.recordCrash(held('crashes'), LIMIT)
          },
        }
        for (const [id, end] of Object.entries(ends)) {
          await add({ id, price: 7 })
          await claimRun(store, 'me')
          await store.saveJob(held(id), job)
          await end()
          const failure = isUnknown
            ? { code: 'outcome_unknown', message: expect.stringMatching(/^The provider may have accepted/) }
            : { ...CRASHED, message: expect.stringMatching(/^gave up/) }
          expect(await runOf(id)).toMatchObject({ status: 'failed', failure })
        }
        const kept = isUnknown ? { unknown: Object.keys(ends), credits: 86 } : { unknown: [], credits: 100 }
        expect(await store.verify()).toMatchObject({ problems: [], ...kept })
      },
    )

    test('accepts a decision of an operator, unlike any other run', async () => {
      const { store, add } = await fill()
      const id = await add()
      expect(await store.decideUnknown(id, { nowMs: 9 })).toBe('other')
      await claimRun(store, 'me')
      await store.failRun(held(id), FAILURE)
      expect(await store.decideUnknown(id, { adopt: HANDLE, nowMs: 9 })).toBe('other')
      expect(await store.decideUnknown('run_none', { nowMs: 9 })).toBe('missing')
    })
  })
}
