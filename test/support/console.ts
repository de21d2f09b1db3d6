/** A service with a console, and its users: browsers with a cookie but without a page. */
import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import type { Clock } from '../../src/host/clock.js'
import type { HttpRequest } from '../../src/host/http.js'
import { readText } from '../../src/host/receive-text.js'
import { AUTH_PATHS, CONSOLE_PATHS } from '../../src/protocol/console.js'
import { RUNS_PATH } from '../../src/protocol/id.js'
import type { Page, PageFile } from '../../src/service/console/page.js'
import { addLink } from '../../src/service/console/sessions.js'
import type { Store } from '../../src/service/store/contract.js'
import { type Answer, ask, createTestService, type TestService, type TestServiceOptions } from './service.js'
import { openStoreOf, type TestData } from './test-database.js'

/** URL of the test's service: on loopback, as for a browser on the same machine. */
export const CONSOLE_URL = 'http://127.0.0.1:7878'

export const ANN = 'ann@example.com'
export const PASSWORD = 'correct horse battery staple'

export const FOX = { model: 'rushes/preview-image', input: { prompt: 'a fox' } }
export const BOAT = {
  model: 'rushes/preview-video',
  input: { prompt: 'a boat', duration: '10', aspect_ratio: '9:16' },
}

/** Expected form of an error response, for `toMatchObject`. */
export const refusal = (status: number, code: string) => ({ status, body: { error: { code } } })

/** Fills in `:id` in a path. */
export const pathOf = (path: string, id: unknown): string => path.replace(':id', String(id))

const fileOf = (text: string, contentType: string): PageFile => {
  const bytes = Buffer.from(text)
  return {
    bytes,
    etag: `"${createHash('sha256').update(bytes).digest('hex')}"`,
    contentType,
    encoded: new Map(),
  }
}

export const TEST_PAGE: Page = {
  index: fileOf('<!doctype html><title>Test</title>', 'text/html; charset=utf-8'),
  assets: new Map([['app-1.js', fileOf('export {}', 'text/javascript; charset=utf-8')]]),
}

/** Trusts the proxy of the test, so that each browser can have a different address. */
export const createConsoleService = (options: TestServiceOptions = {}): Promise<TestService> =>
  createTestService({
    console: TEST_PAGE,
    publicUrl: CONSOLE_URL,
    trustedProxies: ['127.0.0.1'],
    rendering: false,
    ...options,
  })

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Browser {
  readonly address: string
  /** Value of the session cookie. */
  cookie: string | undefined
  ask(
    method: Method,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer>
  get(path: string): Promise<Answer>
  post(path: string, body?: unknown): Promise<Answer>
}

let addresses = 0
const nextAddress = (): string => {
  addresses++
  return `198.18.${Math.floor(addresses / 250)}.${1 + (addresses % 250)}`
}

/** Creates a browser that sends `Origin` with every change, and keeps its cookie. */
export function createBrowser(
  { fetch, baseUrl }: Pick<TestService, 'fetch' | 'baseUrl'>,
  { address = nextAddress(), origin = new URL(baseUrl).origin } = {},
): Browser {
  const browser: Browser = {
    address,
    cookie: undefined,
    async ask(method, path, body, headers = {}) {
      const response = await fetch({
        method: method as HttpRequest['method'],
        url: new URL(path, baseUrl),
        headers: {
          'x-forwarded-for': address,
          ...(method !== 'GET' && method !== 'HEAD' && { origin }),
          ...(browser.cookie !== undefined && { cookie: `rushes_session=${browser.cookie}` }),
          ...headers,
        },
        ...(body !== undefined && {
          body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
        }),
      })
      const [, value] = /(?:^|, )rushes_session=([^;]*)/.exec(response.header('set-cookie') ?? '') ?? []
      if (value !== undefined) browser.cookie = value === '' ? undefined : value
      const text = await readText(response, 100_000_000)
      const isJson = response.header('content-type')?.startsWith('application/json') && text !== ''
      return { status: response.status, body: isJson ? JSON.parse(text) : text, header: response.header }
    },
    get: (path) => browser.ask('GET', path),
    post: (path, body) => browser.ask('POST', path, body),
  }
  return browser
}

/** Loads a path with its bytes, which `ask` takes for text. */
export async function load(
  { fetch, baseUrl }: Pick<TestService, 'fetch' | 'baseUrl'>,
  path: string,
  headers: Readonly<Record<string, string>> = {},
) {
  const { body, ...response } = await fetch({ method: 'GET', url: new URL(path, baseUrl), headers })
  return { ...response, bytes: await buffer(body) }
}

/** Service to which `addUser` adds users. */
export interface UserTarget extends Pick<TestService, 'dataFolder' | 'databaseUrl'> {
  readonly clock: Clock
}

/** Runs a function with a store on the service's database. */
export async function withStore<T>(data: TestData, use: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStoreOf(data)
  return await use(store).finally(() => store.close())
}

/** Bans the default account, or lifts the ban. */
export const setBanned = (data: TestData, isBanned = true): Promise<unknown> =>
  withStore(data, (store) => store.setBanned('default', isBanned))

/** Adds a user to an account, which is created if it does not exist. Returns the token of a sign-in link. */
export async function addUser(
  { clock, ...data }: UserTarget,
  email: string,
  account = 'default',
): Promise<string> {
  return await withStore(data, async (store) => {
    const nowMs = clock.now()
    const accountId = await store.ensureAccount({ name: account, credits: 10_000, nowMs })
    const userId =
      (await store.addUser({ email, accountId, nowMs })) ?? (await store.findUser(email))?.id ?? 0
    return await addLink(store, userId, nowMs)
  })
}

/** Returns a browser with a session from a sign-in link. */
export async function signInByLink(service: TestService, email = ANN, account?: string): Promise<Browser> {
  const token = await addUser(service, email, account)
  const browser = createBrowser(service)
  const { status, body } = await browser.post(AUTH_PATHS.link, { token })
  if (status !== 200) throw new Error(`the link was refused: ${JSON.stringify(body)}`)
  return browser
}

/** Like `signInByLink`, and also sets a password. */
export async function createUser(service: TestService, email?: string, account?: string): Promise<Browser> {
  const browser = await signInByLink(service, email, account)
  await browser.post(AUTH_PATHS.password, { password: PASSWORD })
  return browser
}

/** Adds a session for a user that `addUser` added, without a browser. */
export async function addSession(target: UserTarget, email: string, hash: string): Promise<void> {
  await withStore(target, async (store) => {
    const nowMs = target.clock.now()
    const userId = (await store.findUser(email))?.id ?? 0
    const from = { fromLink: false, address: undefined, userAgent: undefined }
    await store.addSession({ hash, userId, ...from, nowMs, expiresAtMs: nowMs + 60_000 })
  })
}

/** Creates a run like the form of the console. Returns the run. */
export const createInConsole = async (browser: Browser, body: object = FOX): Promise<Answer['body']> =>
  (await browser.post(CONSOLE_PATHS.runs, body)).body

/** Creates runs with an API key, two per second. Returns their ids. */
export async function createByKey(
  service: TestService,
  count: number,
  key = service.apiKey,
  body: object = FOX,
): Promise<string[]> {
  const ids: string[] = []
  for (let at = 0; at < count; at++) {
    await service.clock.advance(500)
    ids.push((await ask(service, 'POST', RUNS_PATH, body, { key })).body.id)
  }
  return ids
}
