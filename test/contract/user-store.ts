/** What every database keeps to about the console's users. */
import { describe, expect, test } from 'vitest'
import type { Store } from '../../src/service/store/index.js'
import { fillStore, numbers, type OpenDatabase } from './filled-store.js'

export function userContract(open: OpenDatabase): void {
  async function fill() {
    const { store, run } = await open()
    const { accountId } = await fillStore(() => store)
    const addUser = async (email: string) => (await store.addUser({ email, accountId, nowMs: 5 })) ?? 0
    const userId = await addUser('ann@example.com')
    const other = await addUser('bob@example.com')
    const addSession = (hash: string, of = userId) =>
      store.addSession({
        ...{ hash, userId: of, fromLink: false, address: '127.0.0.1', userAgent: 'Firefox' },
        ...{ nowMs: 10, expiresAtMs: 100 },
      })
    const addLink = (hash: string, of = userId, nowMs = 10) =>
      store.addLink({ hash, userId: of, nowMs, expiresAtMs: nowMs + 90 })
    const hashes = async () => (await store.listSessions(userId, 20)).map(({ hash }) => hash)
    return { store, run, addUser, userId, other, addSession, addLink, hashes }
  }

  test.each<
    [act: string, act: (store: Store, userId: number) => Promise<unknown>, sessions: string[], links: number]
  >([
    ['ending a session ends no other session and no link', (store) => store.endSession('s'), ['kept'], 1],
    ['ending all sessions ends the links too', (store, userId) => store.endSessions(userId), [], 0],
    [
      'setting a password ends all other sessions and the links',
      (store, userId) => store.setPassword(userId, 'scrypt$1', 'kept'),
      ['kept'],
      0,
    ],
    ['removing a user ends its sessions and links', (store, userId) => store.removeUser(userId), [], 0],
  ])('%s, and nothing of another user', async (_, act, sessions, links) => {
    const { store, userId, other, addSession, addLink, hashes } = await fill()
    for (const name of ['kept', 's']) await addSession(name)
    await addSession('of bob', other)
    await addLink('l')
    await addLink('l of bob', other)
    await act(store, userId)
    expect(await hashes()).toEqual(sessions)
    expect([await store.useLink('l', 20)].flatMap((user) => user ?? [])).toHaveLength(links)
    expect(await store.findSession('of bob', 20)).toMatchObject({ user: { id: other } })
    expect(await store.useLink('l of bob', 20)).toMatchObject({ id: other })
  })

  test('what a request of a removed user still adds has no effect, also for a later user', async () => {
    const { store, addUser, other, addSession, addLink } = await fill()
    expect([await store.removeUser(other), await store.removeUser(other)]).toEqual([true, false])
    await addSession('late', other)
    await addLink('late', other)
    expect(await addUser('bob@example.com')).toBeGreaterThan(other)
    expect([await store.findSession('late', 20), await store.useLink('late', 20)]).toEqual([
      undefined,
      undefined,
    ])
  })

  test('of two password changes at once, the second does not win with its session that has ended', async () => {
    const { store, userId, addSession, hashes } = await fill()
    const changes = ['first', 'second']
    for (const name of changes) await addSession(name)
    const ends = await Promise.allSettled(changes.map((name) => store.setPassword(userId, name, name)))
    const [won] = changes.filter((_, at) => ends[at]?.status === 'fulfilled')
    expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(ends.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'not_signed_in' },
    })
    expect(await store.findUser('ann@example.com')).toMatchObject({ password: won })
    expect(await hashes()).toEqual([won])
  })

  test('a sign-in link signs its user in once, even with concurrent requests', async () => {
    const { store, userId, addLink } = await fill()
    await addLink('l')
    const given = await Promise.all(Array.from({ length: 8 }, () => store.useLink('l', 20)))
    expect(given.filter((each) => each !== undefined)).toMatchObject([
      { id: userId, email: 'ann@example.com', account: 'acme', banned: false },
    ])
    expect(await store.useLink('l', 20)).toBeUndefined()
  })

  describe('a session', () => {
    test('each new session or link removes up to 500 expired sessions', async () => {
      const { store, run, userId, addLink } = await fill()
      await run(`INSERT INTO tokens (user_id, kind, hash, created_at, used_at, expires_at)
        ${numbers(550)} SELECT ${userId}, 'session', n, 1, 1, 100 FROM numbers`)
      const left = async () => (await store.listSessions(userId, 50)).length
      await addLink('one', userId, 100)
      expect(await left()).toBe(50)
      await addLink('two', userId, 100)
      expect(await left()).toBe(0)
    })

    test('can be extended but not shortened, and not after it has expired', async () => {
      const { store, addSession } = await fill()
      await addSession('s')
      await store.extendSession('s', { usedAtMs: 60, expiresAtMs: 160 })
      await store.extendSession('s', { usedAtMs: 50, expiresAtMs: 150 })
      expect(await store.findSession('s', 159)).toMatchObject({ usedAtMs: 60, expiresAtMs: 160 })
      await store.extendSession('s', { usedAtMs: 160, expiresAtMs: 260 })
      expect(await store.findSession('s', 160)).toBeUndefined()
      await store.extendSession('unknown', { usedAtMs: 60, expiresAtMs: 160 })
    })
  })
}
