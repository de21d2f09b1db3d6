/** The real local service in a temporary folder, called without a port unless a test asks for one, with a manual clock. */
import { join } from 'node:path'
import type { Fetch, HttpRequest } from '../../src/host/http.js'
import { readText } from '../../src/host/response-body.js'
import { RUNS_PATH } from '../../src/protocol/id.js'
import { type Administration, openAdministration } from '../../src/service/admin.js'
import { createService } from '../../src/service/index.js'
import type { Service, ServiceOptions } from '../../src/service/options.js'
import { LOCAL_MODELS } from '../../src/service/rules/names.js'
import { createMemoryRateLimiter } from '../../src/service/rules/rate.js'
import { newKey } from '../../src/service/rules/secrets.js'
import type { NewKey } from '../../src/service/store/keys.js'
import { whenOver } from './after-file.js'
import { createManualClock, type ManualClock } from './clock.js'
import { createInstantEngine } from './engines.js'
import { createQuickPasswords } from './passwords.js'
import { readyDatabase } from './ready-database.js'
import { temporaryFolder } from './temporary-folder.js'
import { databaseUrlOf, openStoreOf, type TestData } from './test-database.js'

export const TEST_BASE_URL = 'http://service.test'

/** Body of a create that every service accepts, for 1 credit. */
export const FOX = { model: LOCAL_MODELS.image, input: { prompt: 'a fox' } }

/** Where requests go. */
interface Reachable {
  readonly fetch: Fetch
  readonly apiKey: string
  readonly baseUrl: string
}

/** Where the data of a service is. Without a URL, in SQLite. */
interface DataOfService extends TestData {
  readonly clock: ManualClock
}

export interface TestService extends Reachable, DataOfService {
  readonly service: Service
  /** 0 if it does not listen. */
  readonly port: number
  /** Internal errors that the service reported. */
  readonly complaints: readonly string[]
}

export interface TestServiceOptions extends Partial<Omit<ServiceOptions, 'clock'>> {
  readonly clock?: ManualClock
  /** Whether to take runs from the queue. Default: true. */
  readonly rendering?: boolean
  /** Listens on this port, 0 for a free one, with that address as its public URL. */
  readonly port?: number
}

/**
 * Creates a service that closes when the test or file ends. Its folder is removed too. Call it within a test or
 * `beforeAll`.
 */
export async function createTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const {
    rendering = true,
    port,
    clock = createManualClock(),
    dataFolder = temporaryFolder(),
    ...rest
  } = options
  const { databaseUrl = await databaseUrlOf(dataFolder) } = options
  if (options.dataFolder === undefined && databaseUrl === undefined)
    readyDatabase('service', join(dataFolder, 'service.db'))
  const complaints: string[] = []
  const service = await createService({
    engine: createInstantEngine(),
    concurrency: 2,
    publicUrl: port === undefined ? TEST_BASE_URL : undefined,
    passwords: createQuickPasswords(),
    log: (line) => complaints.push(line),
    // The PostgreSQL rate limiter uses the clock of the database, but the test controls the time.
    ...(databaseUrl !== undefined && { rateLimiter: createMemoryRateLimiter(clock) }),
    ...rest,
    clock,
    dataFolder,
    databaseUrl,
  })
  whenOver(() => clock.runUntil(service.close()))
  if (rendering) service.startRendering()
  const listening = port === undefined ? undefined : await service.listen({ host: '127.0.0.1', port })
  return {
    service,
    fetch: service.fetch,
    apiKey: service.apiKey ?? '',
    baseUrl: listening?.url ?? rest.publicUrl ?? TEST_BASE_URL,
    port: listening === undefined ? 0 : Number(new URL(listening.url).port),
    clock,
    dataFolder,
    databaseUrl,
    complaints,
  }
}

export interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: the tests look into answers of every shape
  readonly body: any
  header(name: string): string | undefined
}

export interface Asking {
  readonly key?: string | undefined
  readonly authorization?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends one request. Parses the response body if it is JSON. */
export async function ask(
  { fetch, apiKey, baseUrl }: Reachable,
  method: 'GET' | 'HEAD' | 'POST',
  path: string,
  body?: unknown,
  { key = apiKey, authorization = `Bearer ${key}`, headers = {} }: Asking = {},
): Promise<Answer> {
  const response = await fetch({
    method: method as HttpRequest['method'],
    url: new URL(path, baseUrl),
    headers: { ...(authorization === '' ? {} : { authorization }), ...headers },
    ...(body === undefined ? {} : { body: bytesOf(body) }),
  })
  const text = await readText(response, 100_000_000)
  const isJson = response.header('content-type')?.startsWith('application/json') && text !== ''
  return { status: response.status, body: isJson ? JSON.parse(text) : text, header: response.header }
}

const bytesOf = (body: unknown): Uint8Array =>
  body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))

/** Creates a run. Returns its id. */
export async function created(service: Reachable, body: unknown = FOX, asking?: Asking): Promise<string> {
  return (await ask(service, 'POST', RUNS_PATH, body, asking)).body.id
}

/** Asks for a run once. Returns the run. */
export async function runOf(service: Reachable, id: string, asking?: Asking): Promise<Answer['body']> {
  return (await ask(service, 'GET', `${RUNS_PATH}/${id}`, undefined, asking)).body
}

/** Polls a run once per second, like a client, until it has ended. Returns the run. */
export async function ended(service: TestService, id: string, asking?: Asking): Promise<Answer['body']> {
  const pollUntilEnded = async () => {
    for (;;) {
      const run = await runOf(service, id, asking)
      if (run.status !== 'queued' && run.status !== 'processing') return run
      await service.clock.sleep(1_000)
    }
  }
  return await service.clock.runUntil(pollUntilEnded())
}

/** Creates a run, and waits for its end. Returns the run. */
export async function finished(
  service: TestService,
  body?: unknown,
  asking?: Asking,
): Promise<Answer['body']> {
  return await ended(service, await created(service, body, asking), asking)
}

/** Opens the administration beside a service. It closes when the test or file ends. */
export async function administer(service: DataOfService): Promise<Administration> {
  const admin = await openAdministration({ ...service, make: false })
  whenOver(() => admin.close())
  return admin
}

/** Adds an account with a key directly to the store. Returns the key. */
export async function addAccount(
  { clock, ...data }: DataOfService,
  name: string,
  more: Partial<NewKey> = {},
): Promise<string> {
  const store = await openStoreOf(data)
  const { apiKey, ...secret } = newKey()
  const accountId = await store.ensureAccount({ name, credits: 10_000, nowMs: clock.now() })
  await store.addKey({ accountId, ...secret, name: 'test', nowMs: clock.now(), ...more })
  await store.close()
  return apiKey
}
