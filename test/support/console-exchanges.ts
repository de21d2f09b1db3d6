/** Causes every response that the OpenAPI document lists for the endpoint of `rushes login --web`. */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AUTH_PATHS, CONSOLE_PATHS } from '../../src/protocol/console.js'
import { MAX_ACTIVE_KEYS } from '../../src/protocol/credentials.js'
import {
  type Browser,
  CONSOLE_URL,
  createBrowser,
  createConsoleService,
  setBanned,
  signInByLink,
  withStore,
} from './console.js'
import type { Exchange } from './openapi.js'
import { createPostgresProxy } from './postgres-proxy.js'
import type { TestService } from './service.js'
import { runSql } from './test-database.js'

type See = (exchange: Exchange) => void

const PATH = AUTH_PATHS.login
const BODY = { code: 'x', verifier: 'x' }

export async function meetLogin(see: See): Promise<void> {
  await meetCodes(see)
  await meetRefusals(see)
  await meetBrokenDatabases(see)
}

const exchangerOf = (see: See) => async (browser: Browser, body: unknown, headers?: Headers) => {
  const { status, body: answer } = await browser.ask('POST', PATH, body, headers)
  see({ method: 'POST', path: PATH, status, body: answer })
}
type Headers = Readonly<Record<string, string>>

async function meetCodes(see: See): Promise<void> {
  const exchange = exchangerOf(see)
  const service = await createConsoleService()
  const browser = await signInByLink(service)
  const verifier = 'v'
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const codes = await Promise.all(
    [1, 2, 3].map(
      async () => (await browser.post(CONSOLE_PATHS.logins, { challenge, name: 'cli' })).body.code,
    ),
  )
  await exchange(browser, { code: codes[0], verifier })
  await withStore(service, async (store) => {
    const { length } = await store.listKeys()
    const key = { accountId: 1, prefix: 'rk_', name: 'many', nowMs: 0 }
    for (let n = length; n < MAX_ACTIVE_KEYS; n++) await store.addKey({ ...key, hash: `h${n}` })
  })
  await exchange(browser, { code: codes[1], verifier })
  await setBanned(service)
  await exchange(browser, { code: codes[2], verifier })
}

async function meetRefusals(see: See): Promise<void> {
  const exchange = exchangerOf(see)
  const stranger = createBrowser(await createConsoleService())
  await exchange(stranger, BODY, { origin: 'https://evil.example' })
  for (const body of ['{', [], 'x'.repeat(70_000)]) await exchange(stranger, body)
  for (let count = 0; count < 6; count++) await exchange(stranger, BODY)
}

async function meetBrokenDatabases(see: See): Promise<void> {
  const odd = await createConsoleService()
  await runSql(odd, 'ALTER TABLE tokens RENAME TO lost_tokens')
  await exchangerOf(see)(createBrowser(odd), BODY)
  const { databaseUrl } = await createConsoleService()
  const broken = await (databaseUrl === undefined ? createDamaged() : createLost(databaseUrl))
  await broken.clock.runUntil(exchangerOf(see)(createBrowser(broken, { origin: CONSOLE_URL }), BODY))
}

async function createDamaged(): Promise<TestService> {
  const first = await createConsoleService()
  await first.clock.runUntil(first.service.close())
  const { dataFolder, clock } = first
  // Restart the service, so that no page of the database is in memory.
  const damaged = await createConsoleService({ dataFolder, clock })
  for (const name of ['service.db', 'service.db-wal']) writeFileSync(join(dataFolder, name), '')
  return damaged
}

async function createLost(url: string): Promise<TestService> {
  const { url: databaseUrl, close } = await createPostgresProxy(url)
  const service = await createConsoleService({ databaseUrl })
  await close()
  return service
}
