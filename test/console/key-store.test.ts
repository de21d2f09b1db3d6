/** The keys of the console while answers come late, in another order, or not at all. */
import { beforeEach, describe, expect, it } from 'vitest'
import { sessionStore } from '../../src/console/api.js'
import {
  awaitedSecretsStore,
  createKeyActions,
  keysStore,
  lostChangesStore,
  lostSecretsStore,
  secretsStore,
  withKey,
  withPage,
} from '../../src/console/keys/key-store.js'
import { CONSOLE_PATHS, type ConsoleKey, type KeyList, type Session } from '../../src/protocol/console.js'

const key = (id: number, more: Partial<ConsoleKey> = {}) => ({ id, name: `key ${id}`, ...more }) as ConsoleKey
const list = (ids: readonly number[], next: string | null = null): KeyList => ({
  keys: ids.map((id) => key(id)),
  next,
})

const signIn = () =>
  sessionStore.set(() => ({ id: '1', email: 'ann', account: { name: 'default' } }) as Session)
const expire = () => sessionStore.set(() => null)

/** Requests that the test answers, in the order in which they were sent. */
function heldRequests() {
  const sent: { readonly request: unknown; answer(value: unknown): void; refuse(error: unknown): void }[] = []
  const hold = <Answer>(...request: unknown[]) =>
    new Promise<Answer>((resolve, reject) => {
      sent.push({ request, answer: (value) => resolve(value as Answer), refuse: reject })
    })
  return { sent, actions: createKeyActions(hold) }
}

beforeEach(() => {
  signIn()
  keysStore.set(() => undefined)
  for (const store of [secretsStore, lostSecretsStore]) store.set(() => [])
  for (const store of [awaitedSecretsStore, lostChangesStore]) store.set(() => 0)
})

describe('a secret', () => {
  const answer = { key: key(7, { name: 'laptop' }), api_key: 'rk_secret' }

  it('stays available to the user who asked for it until it is shown', async () => {
    keysStore.set(() => list([1]))
    const { sent, actions } = heldRequests()
    const created = actions.create({ name: 'laptop' })
    expect(awaitedSecretsStore.get()).toBe(1)
    sent[0]?.answer(answer)
    expect(await created).toBe('shown')
    expect(awaitedSecretsStore.get()).toBe(0)
    expect(secretsStore.get()).toEqual([{ name: 'laptop', apiKey: 'rk_secret' }])
    expect(keysStore.get()?.keys.map(({ id }) => id)).toEqual([7, 1])
  })

  it('appears when its user signs in again after the session expired', async () => {
    const { sent, actions } = heldRequests()
    const created = actions.create({ name: 'laptop' })
    expire()
    sent[0]?.answer(answer)
    await created
    signIn()
    expect(secretsStore.get()).toEqual([{ name: 'laptop', apiKey: 'rk_secret' }])
  })

  it.each([
    ['there is no response', { status: 0, code: 'network' }],
    ['the service fails', { status: 500, code: 'internal_error' }],
    ['the response has another shape', undefined],
  ])('is reported as lost if %s', async (_name, error) => {
    const { sent, actions } = heldRequests()
    const created = actions.create({ name: 'laptop' })
    if (error === undefined) sent[0]?.answer({})
    else sent[0]?.refuse(error)
    expect(await created).toBe('lost')
    expect(awaitedSecretsStore.get()).toBe(0)
    expect(lostSecretsStore.get()).toEqual([{ name: 'laptop' }])
    expect(secretsStore.get()).toEqual([])
  })

  it('never counts as lost when the service refused the key', async () => {
    const { sent, actions } = heldRequests()
    const created = actions.create({ name: 'laptop' })
    const refusal = { status: 429, code: 'RATE_LIMITED' }
    sent[0]?.refuse(refusal)
    await expect(created).rejects.toEqual(refusal)
    expect([lostSecretsStore.get(), secretsStore.get()]).toEqual([[], []])
  })
})

describe('changes of keys', () => {
  it('changes of two keys may overlap, and neither undoes the other', async () => {
    keysStore.set(() => list([1, 2]))
    const { sent, actions } = heldRequests()
    const both = [actions.change(key(1), { disabled: true }), actions.change(key(2), { name: 'CI' })]
    await Promise.resolve()
    sent[1]?.answer(key(2, { name: 'CI' }))
    sent[0]?.answer(key(1, { disabled: true }))
    await Promise.all(both)
    expect(keysStore.get()?.keys).toEqual([key(1, { disabled: true }), key(2, { name: 'CI' })])
  })

  it('changes of one key are sent in turn, so a disabled key is not shown as active', async () => {
    keysStore.set(() => list([1]))
    const { sent, actions } = heldRequests()
    const renamed = actions.change(key(1), { name: 'CI' })
    const paused = actions.change(key(1), { disabled: true })
    const requests = () => sent.map(({ request }) => request)
    await Promise.resolve()
    expect(requests()).toEqual([['PATCH', CONSOLE_PATHS.key, { params: { id: 1 }, body: { name: 'CI' } }]])
    sent[0]?.refuse({ status: 400, code: 'invalid_input' })
    await expect(renamed).rejects.toMatchObject({ status: 400 })
    await expect.poll(requests).toHaveLength(2)
    sent[1]?.answer(key(1, { disabled: true }))
    await paused
    expect(keysStore.get()?.keys).toEqual([key(1, { disabled: true })])
  })

  it.each([
    [0, 'network', 1],
    [400, 'invalid_input', 0],
  ])(
    'only a lost response is reported as a change that may have been made: %i %s',
    async (status, code, lost) => {
      const { sent, actions } = heldRequests()
      const changed = actions.change(key(1, { name: 'CI' }), { disabled: true })
      await Promise.resolve()
      sent[0]?.refuse({ status, code })
      if (lost > 0) await expect(changed).rejects.toThrow('"CI" may have been changed')
      else await expect(changed).rejects.toEqual({ status, code })
      expect(lostChangesStore.get()).toBe(lost)
    },
  )

  it('queued changes are not sent after the session has expired', async () => {
    const { sent, actions } = heldRequests()
    const [first, second] = [actions.change(key(1), {}), actions.change(key(1), { disabled: true })]
    await Promise.resolve()
    expire()
    sent[0]?.answer(key(1))
    await first
    await expect(second).rejects.toThrow('Not sent')
    expect(sent).toHaveLength(1)
  })
})

describe('the list of keys', () => {
  it.each<[name: string, before: KeyList | undefined, changed: ConsoleKey, after: readonly number[]]>([
    ['a new key comes first', list([2, 1], 'c'), key(3), [3, 2, 1]],
    ['a known key keeps its place', list([2, 1], 'c'), key(1), [2, 1]],
    ['a key without a list becomes the list', undefined, key(1), [1]],
  ])('%s', (_name, before, changed, after) => {
    const { keys, next } = withKey(before, changed)
    expect([keys.map(({ id }) => id), next]).toEqual([after, before?.next ?? null])
  })

  it('appends its next page without the keys that it already has', () => {
    const { keys, next } = withPage(list([3, 2], 'c'), 'c', list([2, 1]))
    expect([keys.map(({ id }) => id), next]).toEqual([[3, 2, 1], null])
  })

  it('ignores a page of a list that was reloaded meanwhile', () => {
    const read = list([3], 'd')
    expect(withPage(read, 'c', list([2, 1]))).toBe(read)
  })
})
