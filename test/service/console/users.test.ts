/** Roles: what owners and members of an account may do, at each endpoint; and invitations. */
import { expect, test } from 'vitest'
import { AUTH_PATHS, CONSOLE_PATHS } from '../../../src/protocol/console.js'
import {
  addUser,
  type Browser,
  createBrowser,
  createConsoleService,
  createInConsole,
  FOX,
  type Method,
  PASSWORD,
  pathOf,
  refusal,
  setBanned,
  signInByLink,
  withStore,
} from '../../support/console.js'
import type { TestService } from '../../support/service.js'

const OWNER = 'ann@example.com'
const MEMBER = 'bob@example.com'

async function signInMember(service: TestService): Promise<Browser> {
  const browser = createBrowser(service)
  await browser.post(AUTH_PATHS.link, { token: await addUser(service, MEMBER, 'default', 'member') })
  return browser
}

const PATHS = CONSOLE_PATHS
type Id = 'run' | 'ownersKey' | 'membersKey' | 'session' | 'invited'

/** Each endpoint: the id in its path, its body, and the status for an owner and for a member. */
const ENDPOINTS: readonly (readonly [
  Method,
  string,
  Id | undefined,
  unknown,
  owner: number,
  member: number,
])[] = [
  ['GET', PATHS.models, undefined, undefined, 200, 200],
  ['GET', PATHS.runs, undefined, undefined, 200, 200],
  ['POST', PATHS.runs, undefined, FOX, 201, 201],
  ['GET', PATHS.run, 'run', undefined, 200, 200],
  ['GET', PATHS.thumbnail, 'run', undefined, 404, 404],
  ['GET', PATHS.reference.replace(':position', '0'), 'run', undefined, 404, 404],
  ['POST', PATHS.cancel, 'run', undefined, 200, 200],
  ['GET', PATHS.keys, undefined, undefined, 200, 200],
  ['POST', PATHS.keys, undefined, { name: 'new' }, 201, 201],
  ['PATCH', PATHS.key, 'ownersKey', { quota: 5 }, 200, 404],
  ['PATCH', PATHS.key, 'membersKey', { quota: 5 }, 200, 200],
  ['POST', PATHS.archive, 'ownersKey', undefined, 200, 404],
  ['POST', PATHS.archive, 'membersKey', undefined, 200, 200],
  ['GET', PATHS.keyLog, undefined, undefined, 200, 403],
  ['GET', PATHS.credits, undefined, undefined, 200, 403],
  ['GET', PATHS.csv, undefined, undefined, 200, 403],
  ['GET', PATHS.spend, undefined, undefined, 200, 403],
  ['GET', PATHS.users, undefined, undefined, 200, 403],
  ['POST', PATHS.users, undefined, { email: 'new@example.com', role: 'member' }, 201, 403],
  ['POST', PATHS.userLink, 'invited', undefined, 201, 403],
  ['PATCH', PATHS.user, 'invited', { role: 'owner' }, 204, 403],
  ['DELETE', PATHS.user, 'invited', undefined, 204, 403],
  ['GET', PATHS.sessions, undefined, undefined, 200, 200],
  ['DELETE', PATHS.session, 'session', undefined, 204, 204],
]

test('the table of roles has every path of the console', () => {
  const known = new Set(ENDPOINTS.map(([, path]) => path.replace('references/0', 'references/:position')))
  expect([...known].toSorted()).toEqual(Object.values(CONSOLE_PATHS).toSorted())
})

test.each(['owner', 'member'] as const)(
  'at every endpoint, the role %s gives what the table says',
  async (role) => {
    const service = await createConsoleService()
    const owner = await signInByLink(service, OWNER)
    const member = await signInMember(service)
    const browser = role === 'owner' ? owner : member
    for (const [method, path, id, body, ...statuses] of ENDPOINTS) {
      await service.clock.advance(1_000)
      const other = await signInByLink(service, role === 'owner' ? OWNER : MEMBER)
      const ids: Readonly<Record<Id, () => Promise<unknown>>> = {
        run: async () => (await createInConsole(owner)).id,
        ownersKey: async () => (await owner.post(PATHS.keys, { name: 'o' })).body.key.id,
        membersKey: async () => (await member.post(PATHS.keys, { name: 'm' })).body.key.id,
        session: async () =>
          (await other.get(PATHS.sessions)).body.sessions.find((each: { current: boolean }) => each.current)
            .id,
        invited: async () =>
          (await owner.post(PATHS.users, { email: `${Math.random()}@example.com`, role: 'member' })).body.user
            .id,
      }
      const { status, body: answered } = await browser.ask(
        method,
        pathOf(path, id === undefined ? '' : await ids[id]()),
        body,
      )
      expect(status, `${role}: ${method} ${path}`).toBe(statuses[role === 'owner' ? 0 : 1])
      if (status === 403) expect(answered.error.code).toBe('owner_only')
    }
  },
)

test('owners see who created, changed and archived keys, in pages of 100', async () => {
  const service = await createConsoleService()
  const owner = await signInByLink(service, OWNER)
  const member = await signInMember(service)
  const { key, api_key: secret } = (await member.post(PATHS.keys, { name: 'ci' })).body
  await owner.ask('PATCH', pathOf(PATHS.key, key.id), { spend_limit: 5, disabled: true })
  await owner.post(pathOf(PATHS.archive, key.id))
  await owner.ask('DELETE', pathOf(PATHS.user, (await owner.get(PATHS.users)).body.users[1].id))
  const { entries, next } = (await owner.get(PATHS.keyLog)).body
  const named = { id: key.id, name: 'ci', prefix: secret.slice(0, 9) }
  const entry = (by: string, action: string, fields: readonly string[] = [], of: unknown = named) => ({
    ...{ id: expect.any(Number), key: of, action, fields, by, created_at: '2026-01-01T00:00:00.000Z' },
  })
  expect(next).toBeNull()
  expect(entries).toEqual([
    entry(OWNER, 'archived'),
    entry(OWNER, 'disabled'),
    entry(OWNER, 'changed', ['spend_limit']),
    entry(MEMBER, 'created'),
    entry('admin', 'created', [], expect.objectContaining({ id: 1, name: 'first' })),
  ])
  expect(JSON.stringify(entries)).not.toContain(secret)
  await withStore(service, async (store) => {
    for (let n = 0; n < 100; n++) await store.changeKey(1, { quota: n }, { nowMs: n })
    await store.addKey({
      accountId: await store.ensureAccount({ name: 'other', credits: 0, nowMs: 0 }),
      hash: 'h',
      prefix: 'rk_',
      name: 'theirs',
      nowMs: 0,
    })
  })
  const first = (await owner.get(PATHS.keyLog)).body
  const second = (await owner.get(`${PATHS.keyLog}?before=${first.next}`)).body
  expect([first.entries.length, second.entries.length, second.next]).toEqual([100, 5, null])
  expect(JSON.stringify([first, second])).not.toContain('theirs')
})

test('a member sees the keys that they created, and owners see all', async () => {
  const service = await createConsoleService()
  const owner = await signInByLink(service, OWNER)
  const member = await signInMember(service)
  await owner.post(PATHS.keys, { name: "the owner's" })
  await member.post(PATHS.keys, { name: "the member's" })
  const names = async ({ get }: Browser) =>
    (await get(PATHS.keys)).body.keys.map(({ name }: { name: string }) => name)
  expect(await names(member)).toEqual(["the member's"])
  expect(await names(owner)).toEqual(["the member's", "the owner's", 'first'])
})

test('an invitation signs in once with its role, and is renewed only until the user has a password', async () => {
  const service = await createConsoleService()
  const owner = await signInByLink(service, OWNER)
  const invited = await owner.post(PATHS.users, { email: ' Eve@Example.com ', role: 'member' })
  expect(invited).toMatchObject({ status: 201, body: { user: { email: 'eve@example.com', role: 'member' } } })
  const { user, link } = invited.body
  expect(link).toMatch(/^http:\/\/127\.0\.0\.1:7878\/#\/link\/[\w-]+$/)
  const again = await owner.post(pathOf(PATHS.userLink, user.id))
  expect(again.body.link).not.toBe(link)
  const eve = createBrowser(service)
  const token = link.split('/').at(-1)
  expect(await eve.post(AUTH_PATHS.link, { token })).toMatchObject({ status: 200, body: { role: 'member' } })
  expect(await createBrowser(service).post(AUTH_PATHS.link, { token })).toMatchObject(
    refusal(401, 'invalid_link'),
  )
  await eve.post(AUTH_PATHS.password, { password: PASSWORD })
  expect(await owner.post(pathOf(PATHS.userLink, user.id))).toMatchObject(refusal(400, 'invalid_input'))

  const refused = [
    { email: 'eve@example.com', role: 'member' },
    { email: 'no email', role: 'member' },
    { email: 'x@example.com', role: 'admin' },
    { email: 'x@example.com' },
  ]
  for (const body of refused)
    expect(await owner.post(PATHS.users, body)).toMatchObject(refusal(400, 'invalid_input'))
  await setBanned(service)
  const more = { email: 'x@example.com', role: 'member' }
  expect(await owner.post(PATHS.users, more)).toMatchObject(refusal(403, 'account_banned'))
})

test('a new role counts from the next request, and a removed user is signed out; nobody changes their own user', async () => {
  const service = await createConsoleService()
  const owner = await signInByLink(service, OWNER)
  const member = await signInMember(service)
  const { users } = (await owner.get(PATHS.users)).body
  const idOf = (email: string) => users.find((each: { email: string }) => each.email === email).id
  expect((await member.get(PATHS.users)).status).toBe(403)
  expect((await owner.ask('PATCH', pathOf(PATHS.user, idOf(MEMBER)), { role: 'owner' })).status).toBe(204)
  expect((await member.get(PATHS.users)).status).toBe(200)
  for (const [method, body] of [
    ['PATCH', { role: 'member' }],
    ['DELETE', undefined],
  ] as const)
    expect(await owner.ask(method, pathOf(PATHS.user, idOf(OWNER)), body)).toMatchObject(
      refusal(400, 'invalid_input'),
    )
  expect((await owner.ask('DELETE', pathOf(PATHS.user, idOf(MEMBER)))).status).toBe(204)
  expect((await member.get(PATHS.runs)).status).toBe(401)
})
