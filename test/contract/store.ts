/** What every implementation of the store's contract keeps to. */
import { describe, expect, test } from 'vitest'
import { KINDS, type Kind } from '../../src/protocol/models.js'
import { LOCAL_MOVES, LOCAL_STATUSES, type LocalStatus } from '../../src/protocol/run-state.js'
import type { StoredJob } from '../../src/service/engines/engine.js'
import type { Store } from '../../src/service/store/index.js'
import type { ClaimRequest, CrashLimit, HeldRun, NewRun } from '../../src/service/store/run.js'
import { claimRun, held, newRun, storedOutput } from '../support/index.js'

const LIMIT: CrashLimit = { crashes: 3, failure: { code: 'renderer_crashed', message: 'gave up' } }
const OUTPUT = storedOutput()

/** A run without a stored key is not asked about. */
const never = () => {
  throw new Error('asked')
}

/** Every function that moves a run, by what it makes of it. */
const MOVERS: Readonly<Record<LocalStatus, (store: Store, id: string) => Promise<unknown>>> = {
  queued: (store, id) => store.recordCrash(held(id), LIMIT),
  processing: (store, id) => claimRun(store, 'me', { only: [id] }),
  succeeded: (store, id) => store.finishRun(held(id), [{ ...OUTPUT, token: id }]),
  failed: (store, id) => store.failRun(held(id), { code: 'x', message: 'y' }),
  canceled: async (store, id) => {
    await store.cancelRun(id, 9)
    await store.settleCanceled(id, 'refunded', 9)
  },
}

const HANDLE = { handle: { id: 'job_1', urls: { get: 'https://a.test/1' } } } as const
const UNKNOWN = { code: 'outcome_unknown', message: 'perhaps' }

/** `open` gives an empty store; it is called within each test. */
export function storeContract(open: () => Store | Promise<Store>): void {
  /** With one worker, `me`. */
  async function createStore() {
    const store = await open()
    const accountId = await store.ensureAccount({ name: 'default', credits: 100, nowMs: 0 })
    let created = 0
    const addRun = async (): Promise<string> => {
      const id = `run_${++created}`
      await store.addRun(newRun({ id, accountId, createdAtMs: created }), never)
      return id
    }
    const statusOf = async (id: string) => (await store.findRun(id, accountId))?.status
    return { store, accountId, addRun, statusOf }
  }

  test('a run changes its status only by legal moves', async () => {
    const { store, addRun, statusOf, accountId } = await createStore()
    for (const from of LOCAL_STATUSES)
      for (const to of LOCAL_STATUSES) {
        const id = await addRun()
        if (from !== 'queued') await MOVERS.processing(store, id)
        if (LOCAL_MOVES[from].length === 0) await MOVERS[from](store, id)
        expect(await statusOf(id)).toBe(from)
        await MOVERS[to](store, id)
        expect(await statusOf(id), `from ${from} to ${to}`).toBe(LOCAL_MOVES[from].includes(to) ? to : from)
        if (from === 'processing' && to === 'queued')
          expect(await store.findRun(id, accountId)).toMatchObject({
            startedAtMs: undefined,
            failure: undefined,
          })
      }
  })

  test('a create that is repeated with its idempotency key is charged once', async () => {
    const store = await open()
    const accountId = await store.ensureAccount({ name: 'default', credits: 100, nowMs: 0 })
    const otherId = await store.ensureAccount({ name: 'other', credits: 100, nowMs: 0 })
    const create = (id: string, key: string, request = 'a fox', changes: Partial<NewRun> = {}) => {
      const idempotency = { key, request, sinceMs: (changes.createdAtMs ?? 1) - 1_000 }
      return store.addRun(newRun({ price: 7, id, accountId, idempotency, ...changes }), () => {})
    }
    const balanceOf = async (id: number) => (await store.findAccount(id))?.balance
    const together = await Promise.all(['one', 'two', 'three'].map((id) => create(id, 'k')))
    const [first] = together
    expect(together).toEqual([first, first, first])
    expect(await create('four', 'k')).toEqual(first)
    expect(await balanceOf(accountId)).toBe(93)
    // It is paid already, so no limit refuses it.
    const refuse = () => {
      throw new Error('refused')
    }
    const again = { key: 'k', request: 'a fox', sinceMs: 0 }
    expect(
      await store.addRun(
        newRun({ id: 'five', accountId, createdAtMs: 2, idempotency: again, price: 1 }),
        refuse,
      ),
    ).toEqual(first)
    expect(await create('six', 'k', 'a bear')).toEqual({ refused: 'key_reused' })
    expect(await create('seven', 'another')).toEqual({ id: 'seven' })
    expect(await create('eight', 'k', 'a fox', { accountId: otherId })).toEqual({ id: 'eight' })
    expect(await create('nine', 'k', 'a bear', { createdAtMs: 1_001 })).toEqual({ id: 'nine' })
    expect([await balanceOf(accountId), await balanceOf(otherId)]).toEqual([79, 93])
    expect((await store.verify()).problems).toEqual([])
  })

  test('a refused create leaves its idempotency key free', async () => {
    const store = await open()
    const accountId = await store.ensureAccount({ name: 'default', credits: 5, nowMs: 0 })
    const idempotency = { key: 'k', request: 'a fox', sinceMs: 0 }
    const create = (id: string, check: () => void) =>
      store.addRun(newRun({ price: 5, id, accountId, idempotency }), check)
    await expect(
      create('one', () => {
        throw new Error('refused')
      }),
    ).rejects.toThrow('refused')
    expect(await create('two', () => {})).toEqual({ id: 'two' })
  })

  test('only the owner finishes a run, once, and publishes its outputs', async () => {
    const { store, addRun, accountId } = await createStore()
    const id = await addRun()
    await claimRun(store, 'me')
    expect(await store.finishRun(held(id, 'other'), [OUTPUT])).toBe(false)
    expect(await store.failRun(held(id, 'other'), LIMIT.failure)).toBeUndefined()
    expect(await store.recordCrash(held(id, 'other'), LIMIT)).toBeUndefined()
    expect(await store.findOutput('t', 'a.png')).toBeUndefined()
    expect(await store.finishRun(held(id), [OUTPUT])).toBe(true)
    // A repeat after a lost response, and another render.
    expect(await store.finishRun(held(id), [OUTPUT])).toBe(true)
    expect(await store.finishRun(held(id), [{ ...OUTPUT, token: 'u' }])).toBe(false)
    expect(await store.findOutput('u', 'a.png')).toBeUndefined()
    expect(await store.findOutput('t', 'a.png')).toEqual(OUTPUT)
    expect(await store.findOutput('t', 'b.png')).toBeUndefined()
    expect(await store.findRun(id, accountId)).toMatchObject({
      outputs: [OUTPUT],
      startedAtMs: 5,
      finishedAtMs: 9,
    })
    expect(await store.findRun(id, accountId + 1)).toBeUndefined()
  })

  test('concurrent claims get different runs, each once', async () => {
    const { store, addRun } = await createStore()
    const ids: string[] = []
    for (let n = 0; n < 30; n++) ids.push(await addRun())
    const claimed = await Promise.all(
      Array.from({ length: 40 }, (_, n) => claimRun(store, n % 2 === 0 ? 'me' : 'other')),
    )
    expect(claimed.flatMap((run) => run?.id ?? []).sort()).toEqual(ids.sort())
  })

  test('an input is stored unchanged, whatever it contains', async () => {
    const { store, accountId } = await createStore()
    for (const [name, input] of Object.entries({
      'a zero character': { prompt: 'a\u0000b', '\u0000': '\u0000' },
      'half of a surrogate pair': { prompt: '\ud800 and \udc00', list: ['\udfff'] },
      'large and small numbers': {
        big: 1e308,
        small: 5e-324,
        precise: 0.1,
        integer: 2n ** 53n,
        seed: 2n ** 64n - 1n,
      },
      'JSON as a text': { prompt: '{"a":"\\u0000"}', nested: [[{ a: null }], [], {}] },
      'the names of an object': { __proto__x: 1, constructor: 'x', toString: [true, false] },
    })) {
      await store.addRun(newRun({ input, id: name, accountId }), never)
      expect((await store.findRun(name, accountId))?.input, name).toEqual(input)
      expect((await claimRun(store, 'me'))?.input, name).toEqual(input)
      // The text of an error may have anything, and is for people.
      const message = 'stderr: \u0000\ud800\n'
      expect(await store.failRun(held(name), { code: 'render_failed', message })).toMatchObject({ runs: 1 })
      const failure = { code: 'render_failed', message: expect.stringMatching(/^stderr: /) }
      expect((await store.findRun(name, accountId))?.failure, name).toEqual(failure)
    }
  })

  test('finds nothing for an impossible id', async () => {
    const { store, accountId } = await createStore()
    for (const name of ['\u0000', 'run_\u0000', '\ud800', "'; DROP TABLE runs", 'x'.repeat(100_000)]) {
      expect(await store.findRun(name, accountId)).toBeUndefined()
      expect(await store.findOutput(name, 'a.png')).toBeUndefined()
      expect(await store.findOutput('t', name)).toBeUndefined()
    }
  })

  test('several outputs of a run keep their order', async () => {
    const { store, addRun, accountId } = await createStore()
    const id = await addRun()
    await claimRun(store, 'me')
    const outputs = ['b', 'a', 'ä,{}"\\', 'c'].map((name, at) => ({ ...OUTPUT, name, bytes: 2 ** 33 + at }))
    expect(await store.finishRun(held(id), outputs)).toBe(true)
    expect((await store.findRun(id, accountId))?.outputs).toEqual(outputs)
  })

  test('a result that the database refuses changes nothing', async () => {
    const { store, addRun, statusOf, accountId } = await createStore()
    const id = await addRun()
    await claimRun(store, 'me')
    const damaged = { ...OUTPUT, name: 'b.png', sha256: null as never }
    await expect(store.finishRun(held(id), [OUTPUT, damaged])).rejects.toThrow()
    expect(await statusOf(id)).toBe('processing')
    expect(await store.findOutput(OUTPUT.token, OUTPUT.name)).toBeUndefined()
    expect(await store.finishRun(held(id), [OUTPUT])).toBe(true)
    expect((await store.findRun(id, accountId))?.outputs).toEqual([OUTPUT])
  })

  test('a claim that names runs gets only the oldest of these', async () => {
    const { store, addRun } = await createStore()
    const [first, second, third] = [await addRun(), await addRun(), await addRun()]
    expect(await claimRun(store, 'me', { only: ['unknown'] })).toBeUndefined()
    expect(await claimRun(store, 'me', { only: [third, second] })).toMatchObject({ id: second })
    expect(await claimRun(store, 'me', { only: [second] })).toBeUndefined()
    expect(await claimRun(store, 'me')).toMatchObject({ id: first })
  })

  /** Runs of two models, of accounts that were served in their order. */
  async function createMixedQueue() {
    const one = await createStore()
    const { store } = one
    const accounts = [one.accountId, await store.ensureAccount({ name: 'other', credits: 100, nowMs: 0 })]
    for (const [n, accountId] of accounts.entries()) {
      await store.addRun(newRun({ id: `first_${n}`, accountId, createdAtMs: 0 }), never)
      await claimRun(store, 'me')
      await store.finishRun(held(`first_${n}`), [])
    }
    const add = (id: string, account: number, model: string, kind: Kind = 'image') =>
      store.addRun(newRun({ id, accountId: accounts[account] ?? 0, model, kind }), never)
    const claim = async (models: readonly string[], request: Partial<ClaimRequest> = {}) =>
      (await claimRun(store, 'me', { models, ...request }))?.id
    return { ...one, add, claim }
  }

  test('a worker gets only runs of its models, however many others are ahead of them', async () => {
    const { add, claim, statusOf } = await createMixedQueue()
    for (let n = 0; n < 5; n++) await add(`other_${n}`, n % 2, 'acme/other')
    await add('mine', 1, 'acme/mine')
    expect(await claim([])).toBeUndefined()
    expect(await claim(['acme/none', 'acme/mine%', 'ACME/MINE', "'"])).toBeUndefined()
    expect(await claim(['acme/none', 'acme/mine'])).toBe('mine')
    expect(await claim(['acme/mine'])).toBeUndefined()
    expect(await statusOf('other_0')).toBe('queued')
    expect(await claim(['acme/mine'], { only: ['other_0'] })).toBeUndefined()
    expect(await claim(['acme/other', 'acme/mine'])).toBe('other_0')
  })

  test('the accounts of a model are served in turn, also one that comes later', async () => {
    const { add, claim } = await createMixedQueue()
    for (const n of [1, 2, 3, 4]) await add(`a${n}`, 0, 'acme/one')
    for (const n of [1, 2]) await add(`b${n}`, 1, 'acme/one')
    const order = [await claim(['acme/one']), await claim(['acme/one']), await claim(['acme/one'])]
    await add('b3', 1, 'acme/one')
    for (let n = 0; n < 4; n++) order.push(await claim(['acme/one']))
    expect(order).toEqual(['a1', 'b1', 'a2', 'b2', 'a3', 'b3', 'a4'])
  })

  test('a run that comes back goes to the head of the queue', async () => {
    const { store, add, claim } = await createMixedQueue()
    for (const n of [1, 2, 3]) await add(`a${n}`, 0, 'acme/one')
    await claim(['acme/one'])
    await claim(['acme/one'])
    await store.recordCrash(held('a1'), LIMIT)
    expect(await claim(['acme/one'])).toBe('a1')
  })

  test('a run carries its model, and a worker finds the models that it does not have', async () => {
    const { store, accountId, add, claim } = await createMixedQueue()
    const carried = { hash: 'h1', json: '{"name":"acme/carried"}' }
    for (const id of ['one', 'two'])
      await store.addRun(newRun({ id, accountId, model: 'acme/carried', carried }), never)
    await add('three', 0, 'acme/plain')
    await add('four', 0, 'acme/own')
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

  test('the decision on an unknown outcome is recorded, also of a free run', async () => {
    const { store, addRun, accountId } = await createStore()
    const id = await addRun()
    await claimRun(store, 'me')
    await store.failRun(held(id), UNKNOWN)
    for (let times = 0; times < 2; times++) expect(await store.decideUnknown(id, { nowMs: 9 })).toBe('done')
    expect(await store.findRun(id, accountId)).toMatchObject({ failure: { code: 'refunded' } })
    expect(await store.verify()).toMatchObject({ unknown: [], problems: [] })
  })

  test('a crash recorded again after a lost response does not count against the next attempt', async () => {
    const { store, addRun, statusOf, accountId } = await createStore()
    const [id, other] = [await addRun(), await addRun()]
    for (let runs = 0; runs < 2; runs++) await claimRun(store, 'me', { nowMs: 5 })
    const crashed = held(id)
    expect(await store.recordCrash(crashed, LIMIT)).toEqual({ runs: 0, refunded: 0 })
    expect(await statusOf(other)).toBe('processing')
    expect(await claimRun(store, 'me', { nowMs: 6 })).toMatchObject({ id, startedAtMs: 6 })
    expect(await store.recordCrash(crashed, LIMIT)).toBeUndefined()
    expect(await statusOf(id)).toBe('processing')
    expect((await store.findRuns([id], accountId))[0]?.crashes).toBe(1)
  })

  test('a worker that is released returns its runs to the queue without counting a crash', async () => {
    const { store, addRun, accountId } = await createStore()
    const id = await addRun()
    for (let times = 0; times < 5; times++) {
      await claimRun(store, 'me')
      await store.releaseRuns('me')
      expect(await store.finishRun(held(id), [OUTPUT])).toBe(false)
    }
    expect(await store.findRun(id, accountId)).toMatchObject({ status: 'queued', startedAtMs: undefined })
    expect(await store.findRuns([id], accountId)).toMatchObject([{ crashes: 0 }])
  })

  test('the queue lengths count only queued runs, by kind', async () => {
    const { store, accountId } = await createStore()
    for (const [at, kind] of KINDS.entries())
      for (let n = 0; n <= at; n++) await store.addRun(newRun({ kind, id: `${kind}_${n}`, accountId }), never)
    const all = Object.fromEntries(KINDS.map((kind, at) => [kind, at + 1]))
    expect(await store.queueLengths()).toEqual(all)
    const { id, kind } = (await claimRun(store, 'me')) as HeldRun
    expect(await store.queueLengths()).toEqual({ ...all, [kind]: Number(all[kind]) - 1 })
    await store.recordCrash(held(id), LIMIT)
    expect(await store.queueLengths()).toEqual(all)
  })

  test('a key is found only by its hash, and the first key is created once', async () => {
    const { store, accountId } = await createStore()
    const key = { accountId, hash: 'h1', prefix: 'rk_first', name: 'first', nowMs: 0 }
    expect(await store.addFirstKey(key)).toBe(true)
    expect(await store.addFirstKey({ ...key, hash: 'h2' })).toBe(false)
    expect(await store.findKey('h1')).toMatchObject({ accountId, disabled: false, expiresAtMs: undefined })
    expect(await store.findKey('h2')).toBeUndefined()
    expect(await store.ensureAccount({ name: 'default', credits: 7, nowMs: 1 })).toBe(accountId)
  })

  describe('the job of a run', () => {
    const INTENT = { id: 'i', sentAtMs: 1, endpoint: 'videos' }

    test('can be stored only by its owner, and comes with each later claim', async () => {
      const { store, addRun } = await createStore()
      const id = await addRun()
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
      const { store, addRun } = await createStore()
      const id = await addRun()
      await claimRun(store, 'me')
      await store.saveIntent(held(id), INTENT)
      const stranger = held(id, 'stranger')
      expect(await store.saveJob(stranger, HANDLE, { ...INTENT, id: 'another' })).toBe(false)
      expect(await store.saveJob(stranger, HANDLE, INTENT)).toBe(true)
    })

    test('a worker that stops keeps a run that waits for the answer to its create', async () => {
      const { store, addRun, statusOf } = await createStore()
      const [open, followed] = [await addRun(), await addRun()]
      await claimRun(store, 'me')
      await claimRun(store, 'me')
      await store.saveIntent(held(open), INTENT)
      await store.saveIntent(held(followed), INTENT)
      await store.saveJob(held(followed), HANDLE, INTENT)
      await store.releaseRuns('me')
      expect([await statusOf(open), await statusOf(followed)]).toEqual(['processing', 'queued'])
    })
  })

  describe('a run whose outcome is unknown', () => {
    async function unknown() {
      const opened = await createStore()
      const { store, accountId } = opened
      await store.addRun(newRun({ id: 'paid', accountId, price: 7 }), () => {})
      await claimRun(store, 'me')
      expect(await store.failRun(held('paid'), UNKNOWN)).toEqual({ runs: 1, refunded: 0 })
      const check = async () => {
        const { problems, unknown } = await store.verify()
        const balance = (await store.listAccounts())[0]?.balance
        return {
          problems,
          unknown,
          balance,
          kinds: (await store.listEntries('default', 100_000)).map(({ kind }) => kind),
        }
      }
      return { ...opened, check }
    }
    const CHARGED = { problems: [], balance: 93, kinds: ['charge', 'added'] }

    test('stays charged, and is listed by a verification', async () => {
      const { check } = await unknown()
      expect(await check()).toEqual({ ...CHARGED, unknown: ['paid'] })
    })

    test('can be refunded once', async () => {
      const { store, check } = await unknown()
      for (let times = 0; times < 2; times++)
        expect(await store.decideUnknown('paid', { nowMs: 9 })).toBe('done')
      expect(await store.decideUnknown('paid', { adopt: HANDLE, nowMs: 9 })).toBe('other')
      const kinds = ['refund', 'charge', 'added']
      expect(await check()).toEqual({ problems: [], unknown: [], balance: 100, kinds })
    })

    test('continues with the job that an operator names, without another charge', async () => {
      const { store, check, statusOf } = await unknown()
      for (let times = 0; times < 2; times++)
        expect(await store.decideUnknown('paid', { adopt: HANDLE, nowMs: 9 })).toBe('done')
      expect(await store.decideUnknown('paid', { nowMs: 9 })).toBe('other')
      expect(await statusOf('paid')).toBe('queued')
      expect((await claimRun(store, 'me'))?.job).toEqual({ ...HANDLE, isNamed: true })
      await store.finishRun(held('paid'), [OUTPUT])
      expect(await check()).toEqual({ ...CHARGED, unknown: [] })
      expect(await store.decideUnknown('paid', { adopt: HANDLE, nowMs: 9 })).toBe('done')
    })

    test('keeps the outputs of a job that is named after its files were removed, until these are old', async () => {
      const { store, accountId } = await unknown()
      const expire = async () => (await store.expireFiles(Number.MAX_SAFE_INTEGER)).map(({ id }) => id)
      expect(await expire()).toEqual(['paid'])
      await store.decideUnknown('paid', { adopt: HANDLE, nowMs: 9 })
      // Of a sweep that was removing them meanwhile.
      await store.filesRemoved(['paid'])
      await claimRun(store, 'me')
      await store.finishRun(held('paid'), [OUTPUT])
      expect(await store.findRuns(['paid'], accountId)).toMatchObject([{ isRemoved: false }])
      expect(await expire()).toEqual(['paid'])
    })

    test('keeps its outcome unknown if the named job fails without being confirmed', async () => {
      const { store, check, accountId } = await unknown()
      for (const id of ['job_9', 'job_8']) {
        expect(await store.decideUnknown('paid', { adopt: { handle: { id } }, nowMs: 9 })).toBe('done')
        expect((await claimRun(store, 'me'))?.job).toEqual({ handle: { id }, isNamed: true })
        const failure = { code: 'render_failed', message: 'Not found.' }
        expect(await store.failRun(held('paid'), failure)).toEqual({ runs: 1, refunded: 0 })
        expect(await check()).toEqual({ ...CHARGED, unknown: ['paid'] })
        expect((await store.findRun('paid', accountId))?.failure?.code).toBe('outcome_unknown')
      }
    })

    test('cannot continue with the job of another run', async () => {
      const { store, check, addRun } = await unknown()
      const other = await addRun()
      await claimRun(store, 'me')
      await store.saveJob(held(other), { handle: { id: HANDLE.handle.id } })
      expect(await store.decideUnknown('paid', { adopt: HANDLE, nowMs: 9 })).toBe('taken')
      expect(await check()).toEqual({ ...CHARGED, unknown: ['paid'] })
    })

    const PAID = { id: 'job_1', place: { type: 'fal', origin: 'https://queue.fal.run', costs: true } }
    const JOBS: readonly (readonly [what: string, job: StoredJob, isUnknown: boolean])[] = [
      ['a create in flight', { intent: { id: 'i', sentAtMs: 1, endpoint: 'model' } }, true],
      ['a paid job', { handle: PAID }, true],
      ['a paid job that has ended without a result', { handle: PAID, end: 'over' }, false],
      ['a free job', { handle: { ...PAID, place: { ...PAID.place, costs: false } } }, false],
    ]
    test.each(JOBS)(
      'is one that ended with %s, if that may continue; else the run is refunded',
      async (_, job, isUnknown) => {
        const { store, accountId } = await createStore()
        const ends = {
          fails: () => store.failRun(held('fails'), LIMIT.failure),
          crashes: async () => {
            for (let crash = 1; crash < 20; crash++) {
              await store.recordCrash(held('crashes'), LIMIT)
              expect(await claimRun(store, 'me')).toMatchObject({ id: 'crashes', job })
            }
            await store.recordCrash(held('crashes'), LIMIT)
          },
        }
        for (const [id, end] of Object.entries(ends)) {
          await store.addRun(newRun({ id, accountId, price: 7 }), () => {})
          await claimRun(store, 'me')
          await store.saveJob(held(id), job)
          await end()
          const message = isUnknown ? /^The provider may have accepted/ : /^gave up/
          expect(await store.findRun(id, accountId)).toMatchObject({
            status: 'failed',
            failure: {
              code: isUnknown ? 'outcome_unknown' : LIMIT.failure.code,
              message: expect.stringMatching(message),
            },
          })
        }
        const ids = Object.keys(ends)
        const kept = isUnknown ? { unknown: ids, credits: 86 } : { unknown: [], credits: 100 }
        expect(await store.verify()).toMatchObject({ problems: [], ...kept })
      },
    )

    test('accepts a decision of an operator, unlike any other run', async () => {
      const { store, addRun } = await createStore()
      const id = await addRun()
      expect(await store.decideUnknown(id, { nowMs: 9 })).toBe('other')
      await claimRun(store, 'me')
      await store.failRun(held(id), { code: 'render_failed', message: 'no' })
      expect(await store.decideUnknown(id, { adopt: HANDLE, nowMs: 9 })).toBe('other')
      expect(await store.decideUnknown('run_none', { nowMs: 9 })).toBe('missing')
    })
  })
}
