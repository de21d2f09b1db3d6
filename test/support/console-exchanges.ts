/** Causes every response that the OpenAPI document lists for the authentication endpoints. */
import { createHash } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AUTH_PATHS, CONSOLE_PATHS, SESSION_HEADER } from '../../src/protocol/console.js'
import { MAX_ACTIVE_KEYS } from '../../src/protocol/credentials.js'
import { createPasswords } from '../../src/service/rules/credentials.js'
import {
  addUser,
  type Browser,
  CONSOLE_URL,
  createBrowser,
  createConsoleService,
  createUser,
  type Method,
  PASSWORD,
  setBanned,
  signInByLink,
  withStore,
} from './console.js'
import type { Exchange } from './openapi.js'
import { createPostgresProxy } from './postgres-proxy.js'
import type { TestService } from './service.js'
import { runSql } from './test-database.js'

type See = (exchange: Exchange) => void

const { session: CHECK, ...CHANGES } = AUTH_PATHS
const ANN = 'ann@example.com'
const SIGN_IN = { email: ANN, password: PASSWORD }
/** Complete request bodies. */
const BODIES: Readonly<Record<string, object>> = {
  [AUTH_PATHS.signIn]: SIGN_IN,
  [AUTH_PATHS.link]: { token: 'x' },
  [AUTH_PATHS.password]: { current: 'x', password: PASSWORD },
  [AUTH_PATHS.login]: { code: 'x', verifier: 'x' },
}

export async function meetConsole(see: See): Promise<void> {
  await meetSessions(see)
  await meetRefusals(see)
  await meetFullQueue(see)
  await meetBrokenDatabases(see)
}

const requesterOf =
  (see: See) =>
  async (
    browser: Browser,
    method: Method,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ) => {
    const answer = await browser.ask(method, path, body, headers)
    see({ method, path, status: answer.status, body: answer.body })
    return answer
  }

async function meetSessions(see: See): Promise<void> {
  const ask = requesterOf(see)
  const service = await createConsoleService()
  const browser = createBrowser(service)
  const token = await addUser(service, ANN)
  await ask(browser, 'POST', AUTH_PATHS.link, { token })
  await ask(browser, 'POST', AUTH_PATHS.password, { password: PASSWORD })
  await ask(browser, 'POST', AUTH_PATHS.password, { password: PASSWORD, current: 'x' })
  await ask(browser, 'GET', CHECK)
  for (const path of [AUTH_PATHS.signIn, AUTH_PATHS.link, AUTH_PATHS.password, AUTH_PATHS.signOut])
    await ask(browser, 'POST', path, BODIES[path], { [SESSION_HEADER]: 'another' })
  await ask(browser, 'POST', AUTH_PATHS.signOut)
  await service.clock.advance(60_000)
  await ask(browser, 'POST', AUTH_PATHS.signIn, SIGN_IN)
  const verifier = 'v'
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const codes = await Promise.all(
    [1, 2, 3].map(
      async () => (await browser.post(CONSOLE_PATHS.logins, { challenge, name: 'cli' })).body.code,
    ),
  )
  await ask(browser, 'POST', AUTH_PATHS.login, { code: codes[0], verifier })
  await withStore(service, async (store) => {
    const { length } = await store.listKeys()
    const key = { accountId: 1, prefix: 'rk_', name: 'many', nowMs: 0 }
    for (let n = length; n < MAX_ACTIVE_KEYS; n++) await store.addKey({ ...key, hash: `h${n}` })
  })
  await ask(browser, 'POST', AUTH_PATHS.login, { code: codes[1], verifier })
  await setBanned(service)
  await ask(browser, 'POST', AUTH_PATHS.login, { code: codes[2], verifier })
}

async function meetRefusals(see: See): Promise<void> {
  const ask = requesterOf(see)
  const service = await createConsoleService()
  for (const path of Object.values(CHANGES)) {
    const stranger = createBrowser(service)
    await ask(stranger, 'POST', path, BODIES[path], { origin: 'https://evil.example' })
    for (const body of ['{', [], 'x'.repeat(70_000)]) await ask(stranger, 'POST', path, body)
    for (let count = 0; count < 6; count++) await ask(stranger, 'POST', path, BODIES[path])
  }
  const stranger = createBrowser(service)
  for (let count = 0; count < 61; count++) await ask(stranger, 'GET', CHECK)
  for (const path of [AUTH_PATHS.signIn, AUTH_PATHS.link])
    await ask(createBrowser(service), 'POST', path, BODIES[path], {
      host: '10.0.0.7',
      origin: 'http://10.0.0.7',
    })
}

/** Fills the queue at once with password derivations that wait for the test. */
async function meetFullQueue(see: See): Promise<void> {
  const ask = requesterOf(see)
  let end = () => {}
  const held = new Promise<void>((resolve) => {
    end = resolve
  })
  const passwords = createPasswords(async (_password, { keyBytes }) => {
    await held
    return new Uint8Array(keyBytes)
  }, 2)
  const service = await createConsoleService({ passwords })
  const browser = await signInByLink(service)
  const waiting = Array.from({ length: 103 }, (_, at) =>
    createBrowser(service).post(AUTH_PATHS.signIn, { ...SIGN_IN, email: `user${at}@example.com` }),
  )
  // The queue has no room for one of them.
  await Promise.race(waiting)
  await ask(createBrowser(service), 'POST', AUTH_PATHS.signIn, SIGN_IN)
  await ask(browser, 'POST', AUTH_PATHS.password, { password: PASSWORD })
  end()
  await Promise.all(waiting)
}

async function meetBrokenDatabases(see: See): Promise<void> {
  const odd = await createConsoleService()
  const browser = await createUser(odd)
  await runSql(odd, 'ALTER TABLE tokens RENAME TO lost_tokens')
  await askAll(see, odd, browser)
  const { databaseUrl } = await createConsoleService()
  await (databaseUrl === undefined ? meetDamagedFile(see) : meetLostDatabase(see, databaseUrl))
}

async function askAll(see: See, { clock }: TestService, browser: Browser): Promise<void> {
  const ask = requesterOf(see)
  await clock.runUntil(ask(browser, 'GET', CHECK))
  for (const path of Object.values(CHANGES)) await clock.runUntil(ask(browser, 'POST', path, BODIES[path]))
}

async function meetDamagedFile(see: See): Promise<void> {
  const first = await createConsoleService()
  const { cookie } = await signInByLink(first)
  await first.clock.runUntil(first.service.close())
  const { dataFolder, clock } = first
  // Restart the service, so that no page of the database is in memory.
  const damaged = await createConsoleService({ dataFolder, clock })
  for (const name of ['service.db', 'service.db-wal']) writeFileSync(join(dataFolder, name), '')
  const browser = createBrowser(damaged)
  browser.cookie = cookie
  await askAll(see, damaged, browser)
  // The page of the session may be in memory since the start. A session that is not found proves nothing without the file.
  for (const name of ['service.db', 'service.db-wal']) rmSync(join(dataFolder, name), { force: true })
  browser.cookie = 'x'
  await clock.runUntil(requesterOf(see)(browser, 'GET', CHECK))
}

async function meetLostDatabase(see: See, url: string): Promise<void> {
  const { url: databaseUrl, close } = await createPostgresProxy(url)
  const service = await createConsoleService({ databaseUrl })
  await close()
  const browser = createBrowser(service, { origin: CONSOLE_URL })
  browser.cookie = 'x'
  await askAll(see, service, browser)
}
