/** A service with a console, and its users: browsers with a cookie, which read and send HTML but run no script. */

import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import type { Clock } from '../../src/host/clock.js'
import type { Store } from '../../src/service/store/index.js'
import type { AssetFile, AssetFiles } from '../../src/service/web/assets.js'
import { addLink } from '../../src/service/web/sessions.js'
import {
  type Answer,
  ask,
  created,
  createTestService,
  FOX,
  type TestService,
  type TestServiceOptions,
} from './service.js'
import { openStoreOf, type TestData } from './test-database.js'

/** URL of the test's service: on loopback, as for a browser on the same machine. */
export const CONSOLE_URL = 'http://127.0.0.1:7878'

export const ANN = 'ann@example.com'

export const BOAT = {
  model: 'rushes/preview-video',
  input: { prompt: 'a boat', duration: '10', aspect_ratio: '9:16' },
}

export const AUTH_PATHS = {
  signIn: '/api/auth/sign-in',
  link: '/api/auth/link',
  password: '/api/auth/password',
  signOut: '/api/auth/sign-out',
  session: '/api/auth/session',
} as const

const assetFile = (name: string, text: string): [string, AssetFile] => [
  name,
  {
    bytes: Buffer.from(text),
    gzip: gzipSync(text),
    contentType: 'text/plain',
    url: `/assets/${name}?v=1`,
  },
]

/** Stands in for what a browser loads; a test of the browser has the built files. */
const TEST_ASSETS: AssetFiles = new Map(
  ['console.css', 'console.js', 'htmx.js', 'icon.svg'].map((name) => assetFile(name, `/* ${name} */`)),
)

/** Trusts the proxy of the test, so that each browser can have a different address. */
export const createConsoleService = (options: TestServiceOptions = {}): Promise<TestService> =>
  createTestService({
    console: TEST_ASSETS,
    ...(options.port === undefined && { publicUrl: CONSOLE_URL }),
    trustedProxies: ['127.0.0.1'],
    rendering: false,
    ...options,
  })

type Method = 'GET' | 'HEAD' | 'POST'

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
  /** Gets a page. Returns its words. */
  words(path: string): Promise<string>
  /** Sends JSON. */
  post(path: string, body?: unknown): Promise<Answer>
  /** Sends a form: with files as multipart, else urlencoded. */
  submit(path: string, fields?: FormFields): Promise<Answer>
}

type FormFields = Readonly<Record<string, string | readonly string[] | Blob>>

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
      const sent = {
        'x-forwarded-for': address,
        ...(method !== 'GET' && method !== 'HEAD' && { origin }),
        ...(browser.cookie !== undefined && { cookie: `rushes_session=${browser.cookie}` }),
        ...headers,
      }
      const service = { fetch, baseUrl, apiKey: '' }
      const answer = await ask(service, method, path, body, { authorization: '', headers: sent })
      const [, value] = /(?:^|, )rushes_session=([^;]*)/.exec(answer.header('set-cookie') ?? '') ?? []
      if (value !== undefined) browser.cookie = value === '' ? undefined : value
      return answer
    },
    get: (path) => browser.ask('GET', path),
    words: async (path) => wordsOf(await browser.get(path)),
    post: (path, body) => browser.ask('POST', path, body, { 'content-type': 'application/json' }),
    async submit(path, fields = {}) {
      const form = new FormData()
      for (const [name, value] of Object.entries(fields))
        for (const each of [value].flat()) form.append(name, each as string)
      const hasFiles = Object.values(fields).some((value) => value instanceof Blob)
      const body = hasFiles ? form : new URLSearchParams([...form] as [string, string][])
      const sent = new Response(body)
      const bytes = new Uint8Array(await sent.arrayBuffer())
      return await browser.ask('POST', path, bytes, {
        'content-type': sent.headers.get('content-type') ?? '',
      })
    },
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
interface UserTarget extends Pick<TestService, 'dataFolder' | 'databaseUrl'> {
  readonly clock: Clock
}

/** Runs a function with a store on the service's database. */
export async function withStore<T>(data: TestData, use: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStoreOf(data)
  return await use(store).finally(() => store.close())
}

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

/** A service, and a browser of its first user with a session. */
export async function signedIn(options?: TestServiceOptions) {
  const service = await createConsoleService(options)
  return { service, browser: await signInByLink(service) }
}

/** Where an answer leads the browser. Undefined if it shows a page. */
export const leadsTo = ({ status, header }: Answer): string | undefined =>
  status === 303 ? header('location') : undefined

/** The words of a page, without its tags. */
export const wordsOf = ({ body }: Answer): string =>
  String(body)
    .replace(/<[^>]*>/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
    .replace(/\s+/g, ' ')

/** The value of a hidden field of a page. */
export const hiddenField = ({ body }: Answer, name: string): string =>
  new RegExp(`name="${name}" value="([^"]*)"`).exec(body)?.[1] ?? ''

let forms = 0

/** Sends the form of a new run. Returns the answer. */
export const submitRun = (browser: Browser, fields: FormFields = {}): Promise<Answer> =>
  browser.submit('/runs', {
    form_key: `form ${forms++}`.replace(' ', '-'),
    model: FOX.model,
    prompt: 'a fox',
    ...fields,
  })

/** Creates a run with the form. Returns its id. */
export async function createInConsole(browser: Browser, fields?: FormFields): Promise<string> {
  const { status, header, body } = await submitRun(browser, fields)
  const id = /^\/runs\/(run_\w+)$/.exec(header('location') ?? '')?.[1]
  if (id === undefined) throw new Error(`${status} ${body}`)
  return id
}

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
    ids.push(await created(service, body, { key }))
  }
  return ids
}
