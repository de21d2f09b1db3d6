/** The rate limits of people (docs/console.md), at their edges. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/host/clock.js'
import { AUTH_PATHS, CONSOLE_PATHS } from '../../../src/protocol/console.js'
import { RUNS_PATH } from '../../../src/protocol/id.js'
import { createCredits } from '../../../src/service/console/credits.js'
import { withReadTurns } from '../../../src/service/console/limits.js'
import { createPasswords, type Passwords } from '../../../src/service/rules/credentials.js'
import type { FoundRuns } from '../../../src/service/store/console-store.js'
import type { ServiceStore } from '../../../src/service/store/contract.js'
import {
  ANN,
  addUser,
  type Browser,
  createBrowser,
  createConsoleService,
  createUser,
  FOX,
  PASSWORD,
  signInByLink,
} from '../../support/console.js'
import type { TestService } from '../../support/service.js'

const signIn = async (browser: Browser, email: string, password = 'x'.repeat(12)) => {
  const { status, body } = await browser.post(AUTH_PATHS.signIn, { email, password })
  return status === 429 ? body.error.code : status
}

const repeated = async <Answer>(count: number, work: (at: number) => Promise<Answer>): Promise<Answer[]> => {
  const answers: Answer[] = []
  for (let at = 0; at < count; at++) answers.push(await work(at))
  return answers
}

/** A session of its own, from an address of its own. */
async function signedIn(service: TestService): Promise<Browser> {
  const browser = createBrowser(service)
  await signIn(browser, ANN, PASSWORD)
  return browser
}

const denied = (count: number): readonly number[] => Array(count).fill(401)

const from = (service: TestService, address: string): Browser => createBrowser(service, { address })

test('an address gets 5 sign-in requests in 60 s, over all emails and authentication endpoints', async () => {
  const service = await createConsoleService()
  await createUser(service)
  const token = await addUser(service, 'other@example.com')
  const browser = from(service, '192.0.2.1')
  expect(await signIn(browser, 'nobody@example.com')).toBe(401)
  await service.clock.advance(10_000)
  expect(await signIn(browser, ANN, PASSWORD)).toBe(200)
  expect((await browser.post(AUTH_PATHS.link, { token })).status).toBe(200)
  expect((await browser.post(AUTH_PATHS.signOut)).status).toBe(204)
  expect((await browser.post(AUTH_PATHS.link, { token: 'x' })).status).toBe(401)
  const limited = async () => [
    await signIn(browser, 'third@example.com'),
    (await browser.post(AUTH_PATHS.link, { token: 'x' })).status,
    (await browser.post(AUTH_PATHS.signOut)).status,
    (await browser.post(AUTH_PATHS.password, { password: PASSWORD })).status,
  ]
  expect(await limited()).toEqual(['RATE_LIMITED', 429, 429, 429])
  // None of these has counted: the first request is 60 s old in 50 s, and the next ones 10 s later.
  await service.clock.advance(49_999)
  expect(await limited()).toEqual(['RATE_LIMITED', 429, 429, 429])
  await service.clock.advance(1)
  expect(await signIn(browser, 'nobody@example.com')).toBe(401)
  expect((await limited()).at(-1)).toBe(429)
  await service.clock.advance(9_999)
  expect((await limited()).at(-1)).toBe(429)
  await service.clock.advance(1)
  expect(await repeated(5, () => signIn(browser, 'nobody@example.com'))).toEqual([
    ...denied(4),
    'RATE_LIMITED',
  ])
})

test('an email gets 5 sign-in attempts in 60 s, from any address and in any case', async () => {
  const service = await createConsoleService()
  await createUser(service)
  await service.clock.advance(60_000)
  const tries = (email: string, count: number) => repeated(count, () => signIn(createBrowser(service), email))
  expect(await tries(` ${ANN.toUpperCase()} `, 5)).toEqual(denied(5))
  const unused = from(service, '192.0.2.7')
  expect(await signIn(unused, ANN, PASSWORD)).toBe('RATE_LIMITED')
  // The refused request did not count for the address.
  expect(await repeated(6, (at) => signIn(unused, `user${at}@example.com`))).toEqual([
    ...denied(5),
    'RATE_LIMITED',
  ])
  await service.clock.advance(60_000)
  expect(await signIn(unused, ANN, PASSWORD)).toBe(200)
})

test('failed sign-ins of others do not stop a user from changing the password and signing out', async () => {
  const service = await createConsoleService()
  const browser = await createUser(service)
  await service.clock.advance(60_000)
  await repeated(5, () => signIn(createBrowser(service), ANN))
  expect(await signIn(createBrowser(service), ANN, PASSWORD)).toBe('RATE_LIMITED')
  const change = { current: PASSWORD, password: 'another long password' }
  expect((await browser.post(AUTH_PATHS.password, change)).status).toBe(200)
  expect((await browser.post(AUTH_PATHS.signOut)).status).toBe(204)
})

test('a user gets 5 password changes in 60 s, counted apart from signing in', async () => {
  const service = await createConsoleService()
  const browser = await createUser(service)
  await service.clock.advance(60_000)
  const change = async () => {
    const elsewhere = createBrowser(service)
    elsewhere.cookie = browser.cookie
    return (await elsewhere.post(AUTH_PATHS.password, { password: 'x' })).status
  }
  expect(await repeated(6, change)).toEqual([400, 400, 400, 400, 400, 429])
  expect(await signIn(createBrowser(service), ANN, PASSWORD)).toBe(200)
})

test('a sign-out counts against the limit of its address, and works beyond it', async () => {
  const service = await createConsoleService()
  await createUser(service)
  await service.clock.advance(60_000)
  const shared = from(service, '192.0.2.1')
  const tries = (count: number) => repeated(count, (at) => signIn(shared, `user${at}@example.com`))
  await tries(4)
  const signOut = (cookie: string | undefined) => {
    shared.cookie = cookie
    return shared.post(AUTH_PATHS.signOut)
  }
  expect((await signOut((await signedIn(service)).cookie)).status).toBe(204)
  expect(await tries(1)).toEqual(['RATE_LIMITED'])
  const { cookie } = await signedIn(service)
  expect((await signOut(cookie)).status).toBe(204)
  expect((await signOut(cookie)).status).toBe(429)
  await service.clock.advance(60_000)
  expect((await signOut(cookie)).status).toBe(401)
})

test('an IPv6 client is counted by its /64 network', async () => {
  const service = await createConsoleService()
  const tries = (addresses: readonly string[]) =>
    repeated(addresses.length, (at) => signIn(from(service, addresses[at] ?? ''), `user${at}@example.com`))
  const network = ['2001:db8:1:2::1', '2001:db8:1:2::2', '2001:db8:1:2:ffff::', '2001:DB8:1:2:0:0:0:9']
  expect(await tries([...network, '2001:db8:1:2::1'])).toEqual(denied(5))
  expect(await tries(['2001:db8:1:2:aaaa::7'])).toEqual(['RATE_LIMITED'])
  expect(await tries(['2001:db8:1:3::1', '192.0.2.1', '::ffff:192.0.2.1'])).toEqual(denied(3))
  expect(await tries(Array(4).fill('192.0.2.1'))).toEqual([...denied(3), 'RATE_LIMITED'])
})

test('the session check is limited to 60 in 60 s per session, or per address without a session', async () => {
  const service = await createConsoleService()
  const [browser, other] = [await createUser(service), createBrowser(service)]
  await service.clock.advance(60_000)
  await other.post(AUTH_PATHS.signIn, { email: ANN, password: PASSWORD })
  const checks = async (each: Browser, count: number) => {
    const seen = await repeated(count, async () => (await each.get(AUTH_PATHS.session)).status)
    return [seen[0], seen.at(-2), seen.at(-1)]
  }
  expect(await checks(browser, 60)).toEqual([200, 200, 200])
  expect(await checks(browser, 2)).toEqual([429, 429, 429])
  expect(await checks(other, 61)).toEqual([200, 200, 429])
  const stranger = from(service, browser.address)
  expect(await checks(stranger, 61)).toEqual([401, 401, 429])
  stranger.cookie = 'unknown'
  expect((await stranger.get(AUTH_PATHS.session)).status).toBe(429)
  expect((await createBrowser(service).get(AUTH_PATHS.session)).status).toBe(401)
  await service.clock.advance(59_999)
  expect((await browser.get(AUTH_PATHS.session)).body.error.code).toBe('RATE_LIMITED')
  await service.clock.advance(1)
  expect((await browser.get(AUTH_PATHS.session)).status).toBe(200)
})

test('a user of the console gets 200 requests and, counted apart, 20 creates in 10 s', async () => {
  const service = await createConsoleService()
  const [browser, other] = [await createUser(service), await signInByLink(service, 'bob@example.com')]
  const reads = (each: Browser, count: number) =>
    repeated(count, async () => (await each.get(CONSOLE_PATHS.keys)).status)
  const creates = (each: Browser, count: number) =>
    repeated(count, async () => (await each.post(CONSOLE_PATHS.runs, FOX)).status)
  expect((await reads(browser, 200)).every((status) => status === 200)).toBe(true)
  expect(await reads(browser, 1)).toEqual([429])
  expect((await browser.post(CONSOLE_PATHS.keys, { name: 'x' })).status).toBe(429)
  expect(await reads(other, 1)).toEqual([200])
  expect(await creates(browser, 21)).toEqual([...Array(20).fill(201), 429])
  expect(await creates(other, 1)).toEqual([201])
  await service.clock.advance(9_999)
  expect([...(await reads(browser, 1)), ...(await creates(browser, 1))]).toEqual([429, 429])
  await service.clock.advance(1)
  expect([...(await reads(browser, 1)), ...(await creates(browser, 1))]).toEqual([200, 201])
})

test('requests of the console never count against the API key of the account', async () => {
  const service = await createConsoleService()
  const browser = await createUser(service)
  for (let count = 0; count < 20; count++) await browser.post(CONSOLE_PATHS.runs, FOX)
  const headers = { authorization: `Bearer ${service.apiKey}` }
  const create = async () => (await browser.ask('POST', RUNS_PATH, FOX, headers)).status
  const statuses = await repeated(21, create)
  expect(statuses).toEqual([...Array(20).fill(201), 429])
})

// Each takes 110 ms of processor time. `test/service/rules/credentials.test.ts` proves how many wait, and how many run at once.
test('answers 8 concurrent sign-ins, and /healthz between their derivations', async () => {
  const { store, matches } = createPasswords()
  let underWay = 0
  let derived = 0
  const passwords: Passwords = {
    store,
    async matches(password, stored) {
      underWay++
      const isMatch = await matches(password, stored)
      underWay--
      derived++
      return isMatch
    },
  }
  const service = await createConsoleService({ passwords })
  await createUser(service)
  await service.clock.advance(60_000)
  const before = process.memoryUsage().rss
  let isOver = false
  const signIns = Promise.all(
    Array.from({ length: 8 }, (_, at) =>
      signIn(createBrowser(service), at === 0 ? ANN : `user${at}@example.com`, PASSWORD),
    ),
  ).finally(() => {
    isOver = true
  })
  /** How many had been derived at each answer of /healthz that was requested and sent between two of them. */
  const between = new Set<number>()
  let largest = before
  while (!isOver) {
    const derivedBefore = underWay > 0 ? derived : undefined
    expect((await createBrowser(service).get('/healthz')).status).toBe(200)
    if (derivedBefore === derived) between.add(derived)
    largest = Math.max(largest, process.memoryUsage().rss)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  expect((await signIns).sort()).toEqual([200, ...Array(7).fill(401)])
  // Two may end at the same time. `npm run proof -- abuse` measures how long an answer takes.
  expect(between.size).toBeGreaterThanOrEqual(4)
  expect((largest - before) / 1_048_576).toBeLessThan(200)
})

/** A store whose lists of runs end when the test says so. */
function createSlowStore() {
  const begun: number[] = []
  const ends: (() => void)[] = []
  const store: Partial<ServiceStore> = {
    listRuns: ({ accountId }) =>
      new Promise<FoundRuns>((resolve) => {
        begun.push(accountId)
        ends.push(() => resolve({ runs: [], next: undefined }))
      }),
    findRuns: async () => [],
    listAccountEntries: async () => ({ entries: [], next: undefined }),
  }
  return { reads: withReadTurns(store as ServiceStore), begun, endNext: () => ends.shift()?.() }
}

test('an account reads one page at a time, while other accounts read theirs', async () => {
  const { reads, begun, endNext } = createSlowStore()
  const list = (accountId: number) => reads.listRuns({ accountId, limit: 1 })
  const pages = [list(1), list(1), list(2)]
  const found = reads.findRuns(['a'], 1)
  expect(begun).toEqual([1, 2])
  endNext()
  await expect.poll(() => begun).toEqual([1, 2, 1])
  for (let n = 0; n < 2; n++) endNext()
  await Promise.all([...pages, found])
})

test('queues at most 50 page reads of an account, and refuses more', async () => {
  const { reads, endNext } = createSlowStore()
  const list = (accountId: number) => reads.listRuns({ accountId, limit: 1 })
  const pages = Array.from({ length: 51 }, () => list(1))
  await expect(list(1)).rejects.toMatchObject({ code: 'overloaded', status: 503 })
  const other = list(2)
  for (let n = 0; n < 52; n++) {
    endNext()
    await new Promise(setImmediate)
  }
  await Promise.all([...pages, other])
})

test('a response that has started gets its turn, even when the queue is full', async () => {
  const { reads, endNext } = createSlowStore()
  const pages = Array.from({ length: 51 }, () => reads.listRuns({ accountId: 1, limit: 1 }))
  const parts = createCredits({ store: reads, clock: { ...systemClock, now: () => 0 } }).csv(1, {})
  await expect(parts.next()).rejects.toMatchObject({ code: 'overloaded' })
  const more = reads.listMoreEntries({ accountId: 1, limit: 1 })
  for (let n = 0; n < 51; n++) {
    endNext()
    await new Promise(setImmediate)
  }
  expect(await more).toEqual({ entries: [], next: undefined })
  await Promise.all(pages)
})
