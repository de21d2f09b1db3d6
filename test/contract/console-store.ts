/** What every database keeps to about what the console reads. */
import { describe, expect, test } from 'vitest'
import { OUTCOME_UNKNOWN } from '../../src/protocol/run-state.js'
import type { EntryFilter, RunFilter } from '../../src/service/store/lists.js'
import type { NewRun } from '../../src/service/store/run.js'
import { claimRun, held } from '../support/index.js'
import { FAILURE, fillStore, type OpenStore, OUTPUT } from './filled-store.js'

const OUTPUTS = ['a.png', 'b.png'].map((name) => ({ ...OUTPUT, name }))
const DAY_MS = 86_400_000

export function consoleContract(open: OpenStore): void {
  async function fill() {
    const filled = await fillStore(open, 1_000)
    const { store, accountId, keyId, addKey } = filled
    const otherId = await store.ensureAccount({ name: 'other', credits: 1_000, nowMs: 0 })
    const secondKeyId = await addKey({ name: 'build' })
    const add = (id: string, run: Partial<NewRun> = {}, prompt = 'a fox') =>
      filled.add({ id, keyId, model: 'acme/small', price: 2, createdAtMs: 1, input: { prompt }, ...run })
    const claim = async (id: string) => void (await claimRun(store, 'me', { only: [id] }))
    const finish = async (id: string) => {
      await claim(id)
      await store.finishRun(
        held(id),
        OUTPUTS.map((output) => ({ ...output, token: `of ${id}` })),
      )
    }
    const fail = async (id: string, failure = FAILURE, nowMs = 9) => {
      await claim(id)
      await store.failRun(held(id, 'me', nowMs), failure)
    }
    const list = (filter: Partial<RunFilter> = {}) => store.listRuns({ accountId, limit: 100, ...filter })
    const ids = async (filter?: Partial<RunFilter>) => (await list(filter)).runs.map(({ id }) => id)
    const entries = async (filter: Partial<EntryFilter> = {}) =>
      (await store.listAccountEntries({ accountId, limit: 100, ...filter })).entries
    const theirs = { accountId: otherId, keyId: undefined }
    return { ...filled, theirs, secondKeyId, add, claim, finish, fail, list, ids, entries }
  }

  describe('the runs of an account', () => {
    test('appear newest first, without their input and without those of other accounts', async () => {
      const { store, accountId, theirs, keyId, add, finish, fail, claim, list } = await fill()
      await add('one')
      await finish('one')
      await add('theirs', { ...theirs, price: 0 })
      await add('two', { keyId: undefined })
      await fail('two')
      await add('three')
      await claim('three')
      await add('four', { kind: 'video', model: 'acme/large' })
      const { runs, next } = await list()
      expect(next).toBeUndefined()
      expect(
        runs.map((run) => [run.id, run.status, run.key?.name, run.isRefunded, run.finishedAtMs]),
      ).toEqual([
        ['four', 'queued', 'ci', false, undefined],
        ['three', 'processing', 'ci', false, undefined],
        ['two', 'failed', undefined, true, 9],
        ['one', 'succeeded', 'ci', false, 9],
      ])
      expect(runs[2]?.failure).toEqual({ ...FAILURE, message: 'no. Its price was refunded.' })
      expect(runs[3]).toEqual({
        id: 'one',
        sequence: expect.any(Number),
        accountId,
        account: 'acme',
        key: { id: keyId, name: 'ci' },
        model: 'acme/small',
        kind: 'image',
        prompt: 'a fox',
        aspectRatio: undefined,
        price: 2,
        isRefunded: false,
        status: 'succeeded',
        outputs: OUTPUTS.map((output) => ({ ...output, token: 'of one' })),
        failure: undefined,
        crashes: 0,
        isRemoved: false,
        createdAtMs: 1,
        startedAtMs: 5,
        finishedAtMs: 9,
      })
      const found = await store.findRuns(['one', 'three', 'theirs', 'none', 'o\0'], accountId)
      expect([...found].sort((a, b) => b.sequence - a.sequence)).toEqual([runs[1], runs[3]])
      expect(await store.findRuns([], accountId)).toEqual([])
    })

    test('can be filtered by each field, and by all of them together', async () => {
      const { keyId, secondKeyId, add, finish, fail, claim, ids } = await fill()
      await add('a', { kind: 'video' }, 'red')
      await add('b', { model: 'acme/large' }, 'red')
      await add('c', { keyId: secondKeyId }, 'blue')
      await add('d', { keyId: undefined }, 'blue')
      await add('e', { kind: 'video', keyId: secondKeyId, model: 'acme/large' }, 'red and blue')
      await finish('a')
      await fail('b')
      await claim('c')
      const all = { status: 'queued', model: 'acme/large', key: secondKeyId, search: 'AND' } as const
      const filters: readonly (readonly [Partial<RunFilter>, readonly string[]])[] = [
        [{ status: 'queued' }, ['e', 'd']],
        [{ status: 'processing' }, ['c']],
        [{ status: 'succeeded' }, ['a']],
        [{ status: 'failed' }, ['b']],
        [{ model: 'acme/large' }, ['e', 'b']],
        [{ model: 'acme' }, []],
        [{ model: 'a\0' }, []],
        [{ key: keyId }, ['b', 'a']],
        [{ key: 'console' }, ['d']],
        [{ key: 99 }, []],
        [{ search: 'blue' }, ['e', 'd', 'c']],
        [{ search: 'blue', key: secondKeyId }, ['e', 'c']],
        [{ search: 'red', limit: 2 }, ['e', 'b']],
        [all, ['e']],
        [{ ...all, status: 'failed' }, []],
        [{ ...all, model: 'x/y' }, []],
        [{ ...all, key: keyId }, []],
      ]
      for (const [filter, found] of filters) expect(await ids(filter), JSON.stringify(filter)).toEqual(found)
    })

    test('show 1,000 characters of the prompt, none cut in half, and the aspect ratio that was sent', async () => {
      const { add, list, runOf } = await fill()
      const prompt = `${'🦊'.repeat(999)}ab`
      await add('long', { input: { prompt, aspect_ratio: '16:9', image_urls: [] } })
      await add('odd', { input: { prompt: 7, aspect_ratio: 16 } })
      expect((await list()).runs.map(({ prompt, aspectRatio }) => [prompt, aspectRatio])).toEqual([
        [undefined, undefined],
        [`${'🦊'.repeat(999)}a`, '16:9'],
      ])
      expect(await runOf('long')).toMatchObject({ input: { prompt } })
    })

    test('a page of a search reads 2,000 runs, and returns where to continue even without a match', async () => {
      const { theirs, add, list } = await fill()
      const addMany = async (count: number, from: number) => {
        const ids = Array.from({ length: count }, (_, n) => `run_${from + n}`)
        // At most 100 at once, as many as fit the connections within the time limit of a create.
        while (ids.length > 0)
          await Promise.all(ids.splice(0, 100).map((id) => add(id, { keyId: undefined, price: 0 })))
      }
      await add('first', {}, 'a grey heron')
      await addMany(1_000, 0)
      await add('theirs', { ...theirs, price: 0 }, 'a heron')
      await add('middle', {}, 'a heron')
      await addMany(1_500, 1_000)
      const page = async (search: string, before?: number, limit = 100) => {
        const { runs, next } = await list({ before, limit, search })
        return { ids: runs.map(({ id }) => id), next }
      }
      for (const [search, ids] of [
        ['heron', ['middle']],
        ['grey', []],
      ] as const) {
        const newest = await page(search)
        expect(newest).toEqual({ ids, next: expect.any(Number) })
        expect(await page(search, newest.next)).toEqual({ ids: ['first'], next: undefined })
      }
      // A full page continues after its last run.
      const full = await page('heron', undefined, 1)
      expect(full).toEqual({ ids: ['middle'], next: expect.any(Number) })
      expect((await page('heron', full.next, 1)).ids).toEqual(['first'])
    })

    test('a search finds a part of the prompt, in any case', async () => {
      const { add, ids } = await fill()
      const prompt = `a quick "brown" _fox 🦊 at 100 % in C:\\temp\\n, it's İstanbul,\nline\nbreak, Straße`
      await add('found', {}, prompt)
      for (const search of [
        ...['Quick "brown"', 'QUICK', '100 %', '%', '_fox', 'C:\\temp\\n', '\\', "it's", '🦊', 'İstanbul'],
        ...['line\nbreak', 'straße', 'STRAßE', ''],
      ])
        expect(await ids({ search }), search).toEqual(['found'])
      for (const search of ['100_%', 'fox_', '\\"', 'prompt'])
        expect(await ids({ search }), search).toEqual([])
    })

    test('can be paged without gaps or repeats while runs are added', async () => {
      const { add, list } = await fill()
      for (let n = 1; n <= 7; n++) await add(`run_${n}`)
      const seen: string[] = []
      let before: number | undefined
      for (let page = 0; page < 5; page++) {
        const { runs } = await list({ limit: 3, before })
        seen.push(...runs.map(({ id }) => id))
        before = runs.at(-1)?.sequence ?? before
        await add(`late_${page}`)
      }
      expect(seen).toEqual([7, 6, 5, 4, 3, 2, 1].map((n) => `run_${n}`))
    })
  })

  test('a run and its error say that it was refunded, after a failure or by an operator', async () => {
    const { store, add, fail, list, runOf } = await fill()
    const ends = { failed: 'render_failed', unknown: OUTCOME_UNKNOWN }
    for (const [id, code] of Object.entries(ends)) {
      await add(id)
      await fail(id, { code, message: 'It failed.' })
    }
    const seen = async () =>
      await Promise.all(
        (await list()).runs.map(async ({ id, isRefunded }) => [
          isRefunded,
          (await runOf(id))?.failure?.message,
        ]),
      )
    const refunded = [true, 'It failed. Its price was refunded.']
    const kept = 'It failed. Its price was not refunded, because the provider may have charged for it.'
    expect(await seen()).toEqual([[false, kept], refunded])
    await store.decideUnknown('unknown', { nowMs: 9 })
    expect(await seen()).toEqual([refunded, refunded])
  })

  test('runs that are newer than a number are listed, and those of all accounts', async () => {
    const { theirs, add, ids, list } = await fill()
    for (const id of ['one', 'two', 'three']) await add(id)
    await add('theirs', theirs)
    const { runs } = await list({ accountId: undefined })
    expect(runs.map(({ id }) => id)).toEqual(['theirs', 'three', 'two', 'one'])
    expect(await ids({ after: runs[3]?.sequence })).toEqual(['three', 'two'])
    expect(await ids({ after: runs[0]?.sequence, search: 'fox' })).toEqual([])
    const before = runs[1]?.sequence
    expect(await ids({ accountId: undefined, status: 'queued', before })).toEqual(['two', 'one'])
  })

  test('a run says that its outputs were removed', async () => {
    const { store, accountId, add, finish } = await fill()
    await add('one')
    await finish('one')
    const isRemoved = async () => (await store.findRuns(['one'], accountId))[0]?.isRemoved
    expect(await isRemoved()).toBe(false)
    const [expired] = await store.expireFiles(Number.MAX_SAFE_INTEGER)
    expect([expired?.id, await isRemoved()]).toEqual(['one', true])
    // Behind it there are no others. It comes again until its files are removed.
    expect(await store.expireFiles(Number.MAX_SAFE_INTEGER, expired)).toEqual([])
    expect(await store.expireFiles(Number.MAX_SAFE_INTEGER)).toEqual([expired])
    await store.filesRemoved(['one'])
    expect([await store.expireFiles(Number.MAX_SAFE_INTEGER), await isRemoved()]).toEqual([[], true])
  })

  test('no change of a user is made after the session has ended', async () => {
    const { store, accountId, keyId, addKey, add, list } = await fill()
    const by = { session: 'gone', nowMs: 1 }
    await add('one')
    const link = { hash: 'l', userId: 1, nowMs: 1, expiresAtMs: 9 }
    for (const change of [
      () => add('late', { by }),
      () => store.cancelRun('one', 1, accountId, by),
      () => addKey({ name: 'late', by }),
      () => store.changeKey(keyId, { disabled: true }, by),
      () => store.addUser({ email: 'late@example.com', accountId, nowMs: 1, by }),
      () => store.addLink(link, by),
    ])
      await expect(change()).rejects.toMatchObject({ code: 'not_signed_in' })
    expect((await list()).runs).toMatchObject([{ id: 'one', status: 'queued' }])
    expect((await store.listKeys()).map(({ name, disabled }) => [name, disabled])).toEqual([
      ['ci', false],
      ['build', false],
    ])
    expect(await store.listUsers(1)).toEqual([])
  })

  describe('the ledger of an account', () => {
    test('can be listed newest first, filtered and paged', async () => {
      const { store, keyId, theirs, add, fail, entries } = await fill()
      await add('one', { createdAtMs: 10 })
      await fail('one')
      await add('two', { createdAtMs: 20, keyId: undefined, price: 3 })
      await add('theirs', theirs)
      await store.addCredits({ account: 'acme', amount: -7, nowMs: 30 }, () => {})
      const all = await entries()
      const key = { id: keyId, name: 'ci' }
      expect(all.map(({ kind, amount, runId, key }) => [kind, amount, runId, key])).toEqual([
        ['added', -7, undefined, undefined],
        ['charge', -3, 'two', undefined],
        ['refund', 2, 'one', key],
        ['charge', -2, 'one', key],
        ['added', 1_000, undefined, undefined],
      ])
      expect(all[2]).toMatchObject({ account: 'acme', createdAtMs: 9, keyId })
      const amounts = async (filter: Partial<EntryFilter>) =>
        (await entries(filter)).map(({ amount }) => amount)
      expect(await amounts({ kind: 'added' })).toEqual([-7, 1_000])
      expect(await amounts({ kind: 'charge' })).toEqual([-3, -2])
      expect(await amounts({ kind: 'refund' })).toEqual([2])
      expect(await amounts({ keyId })).toEqual([2, -2])
      expect(await amounts({ keyId, kind: 'charge' })).toEqual([-2])
      expect(await amounts({ fromMs: 20 })).toEqual([-7, -3])
      expect(await amounts({ untilMs: 20 })).toEqual([2, -2, 1_000])
      expect(await amounts({ fromMs: 10, untilMs: 30 })).toEqual([-3, -2])
      expect(await amounts({ limit: 2 })).toEqual([-7, -3])
      expect(await amounts({ limit: 2, before: all[1]?.sequence })).toEqual([2, -2])
    })

    test('gives the net cost and the number of runs of each day in UTC', async () => {
      const { store, accountId, theirs, add, fail } = await fill()
      const day = Date.UTC(2026, 0, 31)
      await add('last', { createdAtMs: day - 1, price: 1 })
      await add('first', { createdAtMs: day, price: 2 })
      await add('late', { createdAtMs: day + DAY_MS - 1, price: 4 })
      await add('free', { createdAtMs: day + 1, price: 0 })
      await add('theirs', { createdAtMs: day, ...theirs })
      await add('next', { createdAtMs: day + 2 * DAY_MS, price: 8 })
      // Refunded on a day without a charge.
      await fail('late', FAILURE, day + 5 * DAY_MS)
      await store.addCredits({ account: 'acme', amount: 5, nowMs: day + 9 * DAY_MS }, () => {})
      const days = [
        { day: '2026-01-30', credits: 1, runs: 1 },
        { day: '2026-01-31', credits: 6, runs: 2 },
        { day: '2026-02-02', credits: 8, runs: 1 },
        { day: '2026-02-05', credits: -4, runs: 0 },
      ]
      expect(await store.spendPerDay(accountId, 0)).toEqual(days)
      expect(await store.spendPerDay(accountId, day)).toEqual(days.slice(1))
      expect(await store.spendPerDay(accountId, day + 1)).toEqual([
        { day: '2026-01-31', credits: 4, runs: 1 },
        ...days.slice(2),
      ])
      expect(await store.spendPerDay(accountId, day + 6 * DAY_MS)).toEqual([])
    })
  })
}
