/** What every database keeps to about the console's users. */
import { describe, expect, test } from 'vitest'
import { fillStore, type OpenStore } from './filled-store.js'

export function userContract(open: OpenStore): void {
  async function fill() {
    const { store, accountId } = await fillStore(open)
    const addUser = async (email: string) => (await store.addUser({ email, accountId, nowMs: 5 })) ?? 0
    const userId = await addUser('ann@example.com')
    const other = await addUser('bob@example.com')
    const addSession = (hash: string, more: { userId?: number; fromLink?: boolean } = {}) =>
      store.addSession({
        ...{ hash, userId, fromLink: false, address: '127.0.0.1', userAgent: 'Firefox' },
        ...{ nowMs: 10, expiresAtMs: 100, ...more },
      })
    const addLink = (hash: string, { of = userId, nowMs = 10, expiresAtMs = 100 } = {}) =>
      store.addLink({ hash, userId: of, nowMs, expiresAtMs })
    const hashes = async () => (await store.listSessions(userId, 20)).map(({ hash }) => hash)
    return { store, accountId, addUser, userId, other, addSession, addLink, hashes }
  }

  describe('users', () => {
    test('a user is added once and found by the email in any case', async () => {
      const { store, accountId, addUser, userId } = await fill()
      expect(await store.addUser({ email: 'ANN@Example.com', accountId, nowMs: 6 })).toBeUndefined()
      expect(await store.findUser('aNN@example.COM')).toEqual({
        ...{ id: userId, email: 'ann@example.com', accountId, account: 'acme', banned: false },
        ...{ password: undefined, createdAtMs: 5 },
      })
      expect(await store.findUser('ann@example.org')).toBeUndefined()
      expect(await store.findUser('ann\0@example.com')).toBeUndefined()
      const upper = await addUser('EVE@EXAMPLE.COM')
      expect(await store.findUser('eve@example.com')).toMatchObject({ id: upper, email: 'eve@example.com' })
    })

    test('removing a user removes the sessions and links, and the id is not reused', async () => {
      const { store, addUser, other, addSession, addLink, hashes } = await fill()
      await addSession('s', { userId: other })
      await addSession('of ann')
      await addLink('l', { of: other })
      expect(await store.removeUser(other)).toBe(true)
      expect(await store.removeUser(other)).toBe(false)
      expect(await store.findUser('bob@example.com')).toBeUndefined()
      expect(await store.findSession('s', 20)).toBeUndefined()
      expect(await store.useLink('l', 20)).toBeUndefined()
      expect(await hashes()).toEqual(['of ann'])
      expect(await addUser('bob@example.com')).toBeGreaterThan(other)
      // What a request of the removed user still adds has no effect.
      await addSession('late', { userId: other })
      await addLink('late', { of: other })
      expect(await store.findSession('late', 20)).toBeUndefined()
      expect(await store.useLink('late', 20)).toBeUndefined()
    })

    test('setting a password ends every other session and link of the user', async () => {
      const { store, userId, other, addSession, addLink, hashes } = await fill()
      await addSession('kept', { fromLink: true })
      await addSession('ended')
      await addSession('of bob', { userId: other, fromLink: true })
      await addLink('l')
      await addLink('l of bob', { of: other })
      await store.setPassword(userId, 'scrypt$1', 'kept')
      expect(await store.findUser('ann@example.com')).toMatchObject({ password: 'scrypt$1' })
      expect(await hashes()).toEqual(['kept'])
      expect(await store.findSession('kept', 20)).toMatchObject({
        fromLink: false,
        user: { password: 'scrypt$1' },
      })
      expect(await store.useLink('l', 20)).toBeUndefined()
      expect(await store.findSession('of bob', 20)).toMatchObject({
        fromLink: true,
        user: { password: undefined },
      })
      expect(await store.useLink('l of bob', 20)).toMatchObject({ id: other })
    })
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
      const { store, addSession, addLink } = await fill()
      for (let n = 0; n < 600; n++) await addSession(`old_${n}`)
      const left = async () => (await store.listUsers(50))[0]?.sessions
      expect(await left()).toBe(600)
      await addLink('one', { nowMs: 100, expiresAtMs: 200 })
      expect(await left()).toBe(100)
      await addLink('two', { nowMs: 100, expiresAtMs: 200 })
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

    test('ending all sessions ends the links of the user, ending one does not', async () => {
      const { store, userId, other, addSession, addLink } = await fill()
      for (const name of ['first', 'second']) await addLink(name)
      await addLink('of bob', { of: other })
      await addSession('s')
      await store.endSession('s')
      expect(await store.useLink('first', 20)).toMatchObject({ id: userId })
      await store.endSessions(userId)
      expect(await store.useLink('second', 20)).toBeUndefined()
      expect(await store.useLink('of bob', 20)).toMatchObject({ id: other })
    })
  })
}
