/**
 * Answers that no service should give, and what must hold whatever it gives. A case is plain data, so that fast-check can
 * print and shrink it; `runCase` plays it to a whole command line in process, `complaintsOf` says what was wrong with
 * the outcome. What it expects it concludes from what was sent and answered, never from the code under test.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, sep } from 'node:path'
import { gunzipSync, gzipSync, inflateSync } from 'node:zlib'
import fc from 'fast-check'
import { EXIT, OWN_CODES } from '../../src/errors.js'
import { type Fetch, HttpFailure, type HttpRequest } from '../../src/host/http.js'
import type { JournalRun } from '../../src/journal/index.js'
import { PROBLEMS } from '../../src/protocol/problems.js'
import { FAILURE_STATUSES } from '../../src/protocol/run-state.js'
import { printable, printableJson } from '../../src/protocol/text.js'
import { LOOPBACK_URL, type Ran, runCli } from './cli.js'
import { createManualClock } from './clock.js'
import { ONE_PIXEL_PNG } from './engines.js'
import { rowsOf, stateBytes } from './journal.js'

/** Long enough to be concealed, with characters that JSON and URLs write in other ways. */
export const API_KEY = 'rk_hostile/S3cret+9f8e7d6c'
/** The run that `status`, `wait` and `download` ask for. */
const EARLIER_ID = 'run_earlier'
/** Of C0 only the end of a line, and the tab between cells, are for the terminal. */
export const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/
const LONGEST_MS = 30 * 60_000

// The answers, as data.

export type Body =
  | { readonly json: unknown }
  /** As it is, with `<KEY>` for the API key in one way of writing it or another. */
  | { readonly text: string }
  | { readonly hex: string }
  /** The object with a field that is so many arrays deep. */
  | { readonly deep: number; readonly json: Readonly<Record<string, unknown>> }
  /** So much of one text, after the JSON where there is some. */
  | { readonly mebibytes: number; readonly of: string; readonly json?: unknown }
  | { readonly cut: number; readonly json: unknown }
  | { readonly as: 'utf-16' | 'bom' | 'gzip' | 'nul-ended'; readonly json: unknown }
  | { readonly png: true; readonly extra?: string }

export interface Recipe {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Body
  /** Where the connection dies: before a byte was sent, before the head of the answer came, or within its body. */
  readonly dies?: 'unsent' | 'head' | 'body'
}

export interface Case {
  readonly command: keyof typeof COMMANDS
  readonly terminal: boolean
  /** Answers in turn, the last one for ever. */
  readonly creates: readonly Recipe[]
  readonly looks: readonly Recipe[]
  readonly outputs: readonly Recipe[]
}

const WAIT = ['--timeout', '3m']
const RUN = ['run', 'image', 'a fox']

/** They run in the folder that alone they may write to. */
export const COMMANDS = {
  run: [...RUN, ...WAIT],
  'run --json': [...RUN, ...WAIT, '--json'],
  'run -d': [...RUN, ...WAIT, '-d'],
  'run -d --sidecar': [...RUN, ...WAIT, '-d', '--sidecar'],
  'run -o': [...RUN, ...WAIT, '-o', '{id}/{name}-{index}.{ext}'],
  'run -d --json': [...RUN, ...WAIT, '-d', '--json'],
  'run --no-wait': [...RUN, '--no-wait'],
  'run --no-wait --json': [...RUN, '--no-wait', '--json'],
  wait: ['wait', EARLIER_ID, ...WAIT],
  'wait -d --json': ['wait', EARLIER_ID, ...WAIT, '-d', '--json'],
  status: ['status', EARLIER_ID],
  'status --json': ['status', EARLIER_ID, '--json'],
  download: ['download', EARLIER_ID],
  'download --sidecar': ['download', EARLIER_ID, '--sidecar'],
} as const satisfies Record<string, readonly string[]>

// What they are made of.

const spelled = {
  plain: API_KEY,
  json: [...API_KEY].map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''),
  slashes: API_KEY.replaceAll('/', '\\/'),
  percent: [...API_KEY].map((each) => `%${each.charCodeAt(0).toString(16)}`).join(''),
  component: encodeURIComponent(API_KEY),
}

export const ODD_STRINGS: readonly string[] = [
  '',
  ' ',
  '.',
  '..',
  '../../etc/passwd',
  '/etc/passwd',
  'C:\\Windows\\x',
  'a/../b',
  '%2e%2e%2f',
  'CON',
  '.ssh',
  '-rf',
  '--json',
  '~/x',
  'a\u0000b',
  '{id}',
  '{ext}',
  '__proto__',
  'constructor',
  '$(touch x) `id` \' " ; | & > < * ? ! #',
  '\u001b]0;title\u0007',
  '\u001b]52;c;ZXZpbA==\u0007',
  '\u001b]8;;http://evil.example\u001b\\link\u001b]8;;\u001b\\',
  '\u001b[2J\u001b[1;1H',
  '\u009b31m\u009d0;x\u009c',
  '\u202egnp.exe\u202c',
  '\u2066x\u2069',
  'a\nerror: a line of its own\r\nb',
  '\ud800',
  '\udc00\ud800',
  `bad key ${API_KEY}`,
  'x'.repeat(300),
  'w'.repeat(70_000),
]

const oddString = fc.oneof(
  fc.constantFrom(...ODD_STRINGS),
  fc.constantFrom(...Object.keys(PROBLEMS), ...FAILURE_STATUSES, 'usage', 'internal', 'interrupted'),
  fc.constantFrom('queued', 'Succeeded', 'SUCCEEDED ', 'succeeded', 'FAILED', 'submission_unknown'),
  fc.string({ unit: 'binary', maxLength: 40 }),
)

const oddUrl = fc.oneof(
  { weight: 4, arbitrary: fc.nat(9).map((at) => `${LOOPBACK_URL}/outputs/${at}.png`) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      'https://elsewhere.example/a.mp4?sig=1',
      'file:///etc/passwd',
      'javascript:alert(1)',
      'data:text/plain,x',
      'ftp://h/x',
      '//h/x',
      'http://user:password@h/x.png',
      'http://h/a b\tc\nerror: x.png',
      ' http://h/ ',
      'http://h/\u001b]0;t\u0007\u009b31m.png',
      'http://h/..%2f..%2fetc%2fpasswd',
      'http://h/x.../../..',
      'http://h/x.\u202egnp',
      `http://h/${'x'.repeat(70_000)}`,
    ),
  },
  { weight: 1, arbitrary: oddString },
)

const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: oddString },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom<unknown>(null, true, 0, -1, 1e300, 2 ** 53, 1.5, [], {}, [[]], ['a'], [null], {
      toString: 1,
    }),
  },
  { weight: 1, arbitrary: fc.array(oddUrl, { maxLength: 4 }) },
)

type Shape = Readonly<Record<string, unknown>>

/** One field of it, or a new one, replaced. */
const mutated = (shape: Shape, fields: readonly (readonly string[])[]): fc.Arbitrary<Shape> =>
  fc.tuple(fc.constantFrom(...fields), oddValue).map(([path, value]) => replaced(shape, path, value))

function replaced(shape: Shape, [name = '', ...rest]: readonly string[], value: unknown): Shape {
  const inner = shape[name]
  const next =
    rest.length === 0 ? value : replaced(typeof inner === 'object' ? (inner as Shape) : {}, rest, value)
  return { ...shape, [name]: next }
}

const RAW_TEXTS: readonly string[] = [
  '',
  ' \n',
  'null',
  '[]',
  '"text"',
  '1e999',
  'NaN',
  '{"id":NaN}',
  '{"id":"a","id":"b","status":"succeeded","status":"failed"}',
  '{"__proto__":{"id":"p","status":"succeeded","output":{"urls":["http://h/x"]}}}',
  '{"constructor":{"prototype":{"status":"succeeded"}}}',
  '{"id":123456789012345678901234567890}',
  '<!doctype html><html><head><title>502 Bad Gateway</title></head><body>\n<h1>Bad</h1></body></html>',
  '[[[[',
  '{"id":"run_1","status":"que',
  `{"error":{"code":"invalid_api_key","message":"the key ${spelled.plain} is wrong"}}`,
  `{"error":{"code":"invalid_api_key","message":"the key ${spelled.json} is wrong"}}`,
  `{"error":{"code":"${spelled.slashes}","message":"no"}}`,
  `{"id":"${spelled.json}","status":"queued"}`,
  `{"id":"run_1","status":"${spelled.slashes}"}`,
  `<p>your request: Authorization: Bearer ${spelled.plain}</p>`,
]

const spoiled = (shape: Shape, fields: readonly (readonly string[])[]): fc.Arbitrary<Body> =>
  fc.oneof(
    { weight: 8, arbitrary: mutated(shape, fields).map((json): Body => ({ json })) },
    { weight: 2, arbitrary: fc.constantFrom(...RAW_TEXTS).map((text): Body => ({ text })) },
    { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 4 }).map((json): Body => ({ json })) },
    { weight: 1, arbitrary: fc.constantFrom(100, 10_000).map((deep): Body => ({ deep, json: shape })) },
    {
      weight: 1,
      arbitrary: fc.oneof(
        fc.constantFrom('[', ' ', '{"a":', '\u0000').map((of): Body => ({ mebibytes: 9, of })),
        fc.constant<Body>({ mebibytes: 9, of: ' ', json: shape }),
      ),
    },
    { weight: 1, arbitrary: fc.nat(60).map((cut): Body => ({ cut, json: shape })) },
    {
      weight: 2,
      arbitrary: fc
        .constantFrom('utf-16' as const, 'bom' as const, 'gzip' as const, 'nul-ended' as const)
        .map((as): Body => ({ as, json: shape })),
    },
    {
      weight: 1,
      arbitrary: fc
        .uint8Array({ maxLength: 60 })
        .map((bytes): Body => ({ hex: Buffer.from(bytes).toString('hex') })),
    },
    { weight: 1, arbitrary: fc.constant<Body>({ hex: '7b226964223a22c328ff22fe7d' }) },
  )

const oddStatus = fc.oneof(
  fc.constantFrom(200, 201, 202, 204, 206, 301, 302, 304, 307, 400, 401, 402, 403, 404, 410, 413, 416, 418),
  fc.constantFrom(429, 429, 500, 502, 503, 504, 599),
  fc.integer({ min: 100, max: 599 }),
)

const oddHeaders: fc.Arbitrary<Readonly<Record<string, string>>> = fc.record(
  {
    location: fc.oneof(
      oddString,
      oddUrl,
      fc.constantFrom(
        '/api/v1/runs/run_of_location',
        '/api/v1/runs/..%2f..%2fx',
        '/api/v1/runs/%00',
        '/api/v1/runs/',
        '/api/v1/runs/%1b%5d0;t%07',
        '%',
        'http://[',
        `/api/v1/runs/${spelled.component}`,
        `/api/v1/runs/${spelled.percent}`,
        `http://elsewhere.example/?key=${spelled.component}`,
        `http://elsewhere.example/${spelled.plain}`,
      ),
    ),
    'retry-after': fc.oneof(
      oddString,
      fc.constantFrom('1', '-1', '0', '1e9', 'Infinity', '9'.repeat(400), '99999999', 'soon'),
      fc.constantFrom('Thu, 01 Jan 2026 00:01:00 GMT', 'Fri, 31 Dec 9999 23:59:59 GMT', '00:00:00'),
    ),
    'content-length': fc.constantFrom('0', '1', '99999999999', '-5', 'x', '1, 2', '9'.repeat(30)),
    'content-type': fc.oneof(
      oddString,
      fc.constantFrom('text/html', 'image/png', 'application/json', '__proto__', 'image/../../x'),
    ),
    'content-disposition': fc.constantFrom('attachment; filename="../../evil.sh"', 'attachment; filename=/x'),
    'content-encoding': fc.constantFrom(
      'gzip',
      'br',
      'deflate',
      'identity',
      'zstd',
      'gzip, gzip',
      '\u001b[31m',
    ),
  },
  { requiredKeys: [] },
)

const dying = fc.constantFrom('unsent' as const, 'head' as const, 'body' as const)

/** Mostly one thing is wrong at a time: answers that are wrong in everything are turned away by the first look. */
function around(good: Recipe, body: fc.Arbitrary<Body>): fc.Arbitrary<Recipe> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant(good) },
    { weight: 4, arbitrary: body.map((each) => ({ ...good, body: each })) },
    { weight: 2, arbitrary: oddHeaders.map((headers) => ({ ...good, headers })) },
    { weight: 1, arbitrary: oddStatus.map((status) => ({ ...good, status })) },
    { weight: 1, arbitrary: dying.map((dies) => ({ ...good, dies })) },
    {
      weight: 3,
      arbitrary: fc.record(
        { status: oddStatus, headers: oddHeaders, body, dies: dying },
        { requiredKeys: ['status', 'headers', 'body'] },
      ),
    },
  )
}

export const CREATED: Shape = {
  id: 'run_1',
  model: 'acme/still-1',
  status: 'queued',
  created_at: '2026-01-01T00:00:00Z',
}
export const SUCCEEDED: Shape = {
  ...CREATED,
  status: 'succeeded',
  output: { urls: [`${LOOPBACK_URL}/outputs/1.png`, `${LOOPBACK_URL}/outputs/2.png`] },
  error: null,
  finished_at: '2026-01-01T00:00:09Z',
}
export const FAILED: Shape = {
  ...CREATED,
  status: 'failed',
  error: { code: 'render_failed', message: 'out of paint' },
}
const REFUSED: Shape = { error: { code: 'RATE_LIMITED', message: 'slow down' } }

export const answer = (status: number, json: unknown, headers: Recipe['headers'] = {}): Recipe => ({
  status,
  headers,
  body: { json },
})
export const CREATE_OK = answer(201, CREATED)
export const LOOK_OK = answer(200, SUCCEEDED)
export const OUTPUT_OK: Recipe = {
  status: 200,
  headers: { 'content-type': 'image/png' },
  body: { png: true },
}

const OF_ERROR = [['error'], ['error', 'code'], ['error', 'message'], ['code'], ['message']] as const
const refusal = fc
  .tuple(fc.constantFrom(400, 401, 402, 403, 404, 429, 500), spoiled(REFUSED, OF_ERROR), oddHeaders)
  .map(([status, body, headers]): Recipe => ({ status, body, headers }))

/** Codes that are not the service's to give. */
const impostor = fc
  .tuple(fc.constantFrom(400, 404, 429), fc.constantFrom(...Object.keys(OWN_CODES)))
  .map(([status, code]) => answer(status, { error: { code, message: 'no' } }))

const create = fc.oneof(
  { weight: 3, arbitrary: around(CREATE_OK, spoiled(CREATED, [['id'], ['id'], ['run', 'id'], ['status']])) },
  { weight: 1, arbitrary: refusal },
  { weight: 1, arbitrary: impostor },
)
const OF_RUN = [['id'], ['model'], ['status'], ['output'], ['output', 'urls'], ['created_at']] as const
const look = fc.oneof(
  {
    weight: 5,
    arbitrary: around(LOOK_OK, spoiled(SUCCEEDED, [...OF_RUN, ['output', 'urls'], ['finished_at']])),
  },
  {
    weight: 2,
    arbitrary: fc
      .array(oddUrl, { minLength: 1, maxLength: 4 })
      .map((urls) => answer(200, { ...SUCCEEDED, output: { urls } })),
  },
  { weight: 1, arbitrary: oddString.map((status) => answer(200, { ...CREATED, status })) },
  { weight: 1, arbitrary: around(answer(200, FAILED), spoiled(FAILED, [['status'], ...OF_ERROR])) },
  { weight: 1, arbitrary: refusal },
  { weight: 1, arbitrary: impostor },
)
const output = around(
  OUTPUT_OK,
  fc.oneof(
    spoiled(CREATED, [['id']]),
    fc.string({ unit: 'binary', maxLength: 200 }).map((extra): Body => ({ png: true, extra })),
  ),
)

export const malformedCase: fc.Arbitrary<Case> = fc.record({
  command: fc.constantFrom(...(Object.keys(COMMANDS) as (keyof typeof COMMANDS)[])),
  terminal: fc.boolean(),
  creates: fc.array(create, { minLength: 1, maxLength: 3 }),
  looks: fc.array(look, { minLength: 1, maxLength: 3 }),
  outputs: fc.array(output, { minLength: 1, maxLength: 3 }),
})

const GOOD = { terminal: false, creates: [CREATE_OK], looks: [LOOK_OK], outputs: [OUTPUT_OK] }

/** What was found and must not come back, then what must be tried every time. */
export const REGRESSIONS: readonly Case[] = [
  // JSON that V8 reads but cannot write was a bug (exit 1), and the object of a paid run was not printed.
  {
    ...GOOD,
    command: 'run --no-wait --json',
    creates: [{ ...CREATE_OK, body: { deep: 10_000, json: CREATED } }],
  },
  { ...GOOD, command: 'run -d --json', looks: [{ ...LOOK_OK, body: { deep: 10_000, json: SUCCEEDED } }] },
  { ...GOOD, command: 'status --json', looks: [{ ...LOOK_OK, body: { deep: 10_000, json: SUCCEEDED } }] },
  // The key, as JSON may write it, was printed and kept.
  {
    ...GOOD,
    command: 'run --json',
    creates: [{ ...CREATE_OK, status: 401, body: { text: `{"error":{"message":"no ${spelled.json}"}}` } }],
  },
  { ...GOOD, command: 'run', creates: [{ ...CREATE_OK, body: { text: `{"id":"${spelled.slashes}"}` } }] },
  // The key in the Location of a redirect, and of a 201, with a body and without.
  { ...GOOD, command: 'run', creates: [answer(307, {}, { location: `http://h/?${spelled.plain}` })] },
  {
    ...GOOD,
    command: 'run --no-wait',
    creates: [answer(201, {}, { location: `/api/v1/runs/${spelled.component}` })],
  },
  {
    ...GOOD,
    command: 'run',
    creates: [{ ...answer(201, {}, { location: `/x/${spelled.percent}` }), dies: 'body' }],
  },
  // A refusal in the words of rushes itself was kept as a run that may exist.
  { ...GOOD, command: 'run', creates: [answer(400, { error: { code: 'submission_unknown' } })] },
  { ...GOOD, command: 'run --json', creates: [answer(404, { code: 'interrupted' })] },
  // Never wrong so far, and too rare to be left to chance.
  { ...GOOD, command: 'run', looks: [answer(200, { ...SUCCEEDED, status: 'Succeeded' })] },
  { ...GOOD, command: 'run -d', outputs: [{ ...OUTPUT_OK, dies: 'body' }] },
  { ...GOOD, command: 'run -d', outputs: [{ ...OUTPUT_OK, headers: { 'content-length': '99999' } }] },
  {
    ...GOOD,
    command: 'status',
    looks: [{ ...LOOK_OK, body: { mebibytes: 9, of: ' ', json: SUCCEEDED } }],
  },
]

const MEBIBYTE = 2 ** 20

export function bytesOf(body: Body): Buffer {
  if ('text' in body) return Buffer.from(body.text)
  if ('hex' in body) return Buffer.from(body.hex, 'hex')
  if ('png' in body) return Buffer.concat([ONE_PIXEL_PNG, Buffer.from(body.extra ?? '')])
  if ('mebibytes' in body) {
    const begin = Buffer.from(body.json === undefined ? '' : JSON.stringify(body.json))
    return Buffer.concat([begin, Buffer.alloc(body.mebibytes * MEBIBYTE, body.of)])
  }
  const json = JSON.stringify(body.json) ?? ''
  if ('deep' in body)
    return Buffer.from(`${json.slice(0, -1)},"extra":${'['.repeat(body.deep)}${']'.repeat(body.deep)}}`)
  if ('cut' in body) return Buffer.from(json.slice(0, body.cut))
  if (!('as' in body)) return Buffer.from(json)
  switch (body.as) {
    case 'utf-16':
      return Buffer.from(`\ufeff${json}`, 'utf16le')
    case 'bom':
      return Buffer.from(`\ufeff${json}`)
    case 'gzip':
      return gzipSync(json)
    case 'nul-ended':
      return Buffer.from(`${json}\0`)
  }
}

// The exchange.

export interface Exchange {
  readonly what: 'create' | 'look' | 'output'
  readonly request: HttpRequest
  readonly recipe: Recipe
  readonly bytes: Buffer
}

/** A `fetch` that answers as the case says, and keeps what was asked. */
export function played({ creates, looks, outputs }: Pick<Case, 'creates' | 'looks' | 'outputs'>): {
  readonly fetch: Fetch
  readonly exchanges: Exchange[]
} {
  const exchanges: Exchange[] = []
  const recipes = { create: creates, look: looks, output: outputs }
  return {
    exchanges,
    async fetch(request) {
      // The API is asked for JSON, the host of an output for whatever there is.
      const asksApi = request.headers.accept === 'application/json'
      const what = request.method === 'POST' ? 'create' : asksApi ? 'look' : 'output'
      const number = exchanges.filter((each) => each.what === what).length
      const recipe = recipes[what][Math.min(number, recipes[what].length - 1)]
      if (recipe === undefined) throw new Error(`no answer to ${what}`)
      const { status, headers, dies } = recipe
      const bytes = bytesOf(recipe.body)
      exchanges.push({ what, request, recipe, bytes })
      if (dies === 'unsent') throw new HttpFailure('connect \u001b[31mECONNREFUSED', { sent: false })
      if (dies === 'head') throw new HttpFailure('other side closed\u0007', { sent: true })
      return {
        status,
        header: (name) =>
          Object.hasOwn(headers, name.toLowerCase()) ? headers[name.toLowerCase()] : undefined,
        body: parts(bytes, dies === 'body'),
        discard() {},
      }
    },
  }
}

async function* parts(bytes: Buffer, dies: boolean): AsyncGenerator<Uint8Array> {
  const end = dies ? Math.floor(bytes.byteLength / 2) : bytes.byteLength
  for (let at = 0; at < end; at += MEBIBYTE) yield bytes.subarray(at, Math.min(end, at + MEBIBYTE))
  if (dies) throw new HttpFailure('terminated\u0007', { sent: true })
}

export interface Outcome {
  readonly ran: Ran
  readonly exchanges: readonly Exchange[]
  readonly elapsedMs: number
  readonly rows: readonly JournalRun[]
  readonly state: Buffer
  /** In the folder that the command ran in. */
  readonly files: ReadonlyMap<string, Buffer>
  /** Files that are neither there nor part of the state. */
  readonly strays: readonly string[]
}

const everyFile = (folder: string): readonly string[] =>
  existsSync(folder)
    ? readdirSync(folder, { withFileTypes: true, recursive: true })
        .filter((entry) => !entry.isDirectory())
        .map((entry) => join(entry.parentPath, entry.name))
    : []

export const HOSTILE_ENV: Readonly<Record<string, string>> = {
  RUSHES_BASE_URL: LOOPBACK_URL,
  RUSHES_API_KEY: API_KEY,
  RUSHES_IMAGE_MODEL: 'acme/still-1',
  // A terminal gets lines instead of the spinner, which needs a real one.
  CI: '1',
}

type Answers = Pick<Case, 'terminal' | 'creates' | 'looks' | 'outputs'>

export type Play = (answers: Answers, argv: readonly string[]) => Promise<Outcome>

/** A home of its own, some folders deep, so that a file outside its place is seen; gone afterwards. */
export async function inSandbox<Result>(
  work: (play: Play, folder: string) => Promise<Result>,
): Promise<Result> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'rushes-malformed-')))
  const folder = join(home, 'a', 'b', 'c')
  const before = process.cwd()
  mkdirSync(folder, { recursive: true })
  try {
    process.chdir(folder)
    return await work((answers, argv) => play(home, folder, answers, argv), folder)
  } finally {
    process.chdir(before)
    rmSync(home, { recursive: true, force: true })
  }
}

export const runCase: Play = (answers, argv) => inSandbox((play) => play(answers, argv))

async function play(
  home: string,
  folder: string,
  answers: Answers,
  argv: readonly string[],
): Promise<Outcome> {
  const clock = createManualClock()
  const { fetch, exchanges } = played(answers)
  const tty = { stdout: answers.terminal, stderr: answers.terminal }
  const began = clock.monotonic()
  const ran = await runCli(argv, { env: HOSTILE_ENV, clock, home, fetch, tty })
  const everything = everyFile(home).map((path) => relative(home, path))
  return {
    ran,
    exchanges,
    elapsedMs: clock.monotonic() - began,
    state: stateBytes(home),
    rows: rowsOf(home),
    files: new Map(everyFile(folder).map((path) => [relative(folder, path), readFileSync(path)])),
    strays: everything.filter((path) => !/^(state|config|a\/b\/c)\//.test(path.split(sep).join('/'))),
  }
}

// What must hold.

const JSON_KEYS = 'id,kind,model,status,output,files,error,created_at,finished_at,elapsed_ms,service'
  .split(',')
  .sort()
  .join()
const ERROR_KEYS = 'code,message,hint,http_status,exit_code,run_id'.split(',').sort().join()

const keysOf = (value: unknown): string =>
  typeof value === 'object' && value !== null ? Object.keys(value).sort().join() : String(value)

function parsed(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch {
    return undefined
  }
}

const linesOf = (text: string): readonly string[] => text.split('\n').slice(0, -1)
const isWhole = ({ recipe }: Exchange): boolean => recipe.dies === undefined
/** What a look or a create may hold at most. */
const isSmall = ({ bytes }: Exchange): boolean => bytes.byteLength <= 8 * MEBIBYTE
const hasHead = ({ recipe }: Exchange): boolean => recipe.dies === undefined || recipe.dies === 'body'

/** The run that a look showed whole. */
function runOf(exchange: Exchange): Readonly<Record<string, unknown>> | undefined {
  const { status } = exchange.recipe
  if (exchange.what !== 'look' || !isWhole(exchange) || !isSmall(exchange) || status < 200 || status > 299)
    return undefined
  const value = parsed(exchange.bytes.toString('utf8'))
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}

/** Neither died nor fell short of the length that it declared. */
const isComplete = (exchange: Exchange): boolean => {
  const declared = exchange.recipe.headers['content-length'] ?? ''
  const isTrue = !/^\d{1,15}$/.test(declared) || Number(declared) === exchange.bytes.byteLength
  return isWhole(exchange) && isTrue
}

const isHttp = (value: unknown): boolean =>
  typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)

function urlsOf(run: Readonly<Record<string, unknown>> | undefined): readonly unknown[] | undefined {
  const urls = (run?.output as { urls?: unknown } | null | undefined)?.urls
  const isDone = run?.status === 'succeeded' && Array.isArray(urls) && urls.length > 0 && urls.every(isHttp)
  return isDone ? (urls as unknown[]) : undefined
}

const isUsageExceeded = ({ recipe, bytes }: Exchange): boolean => {
  if (recipe.dies === 'body') return false
  const value = parsed(bytes.toString('utf8')) as
    | { code?: unknown; error?: { code?: unknown } }
    | null
    | undefined
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  const error = isObject ? value.error : undefined
  const nested = typeof error === 'object' && error !== null && !Array.isArray(error)
  return (nested ? error.code : isObject ? value.code : undefined) === 'USAGE_EXCEEDED'
}

/** The exit codes that an unsuccessful create may end with; undefined when it was answered with a 201. */
function codesOfCreate(last: Exchange): readonly number[] | undefined {
  const { status, dies } = last.recipe
  if (dies === 'unsent') return [EXIT.network]
  if (dies === 'head') return [EXIT.outcomeUnknown]
  if (status === 201) return undefined
  if (status >= 300 && status < 400) return [EXIT.serviceBroken]
  if (status === 401) return [EXIT.key]
  if (status === 402 || status === 403) return [EXIT.account]
  if (status === 404) return [EXIT.refused, EXIT.notFound]
  if (status === 429) return [isUsageExceeded(last) ? EXIT.account : EXIT.rateLimited]
  if (status >= 400 && status < 500) return [EXIT.refused]
  return [EXIT.outcomeUnknown]
}

/** What each exit code of a command about an existing run must have behind it. */
function hasGround(code: number, exchanges: readonly Exchange[], command: string): boolean {
  const looks = exchanges.filter(({ what }) => what === 'look')
  const saw = (from: number, to = from) =>
    looks.some((each) => hasHead(each) && each.recipe.status >= from && each.recipe.status <= to)
  const runs = looks.map(runOf)
  const ground: Readonly<Record<number, () => boolean>> = {
    [EXIT.ok]: () =>
      command.startsWith('status')
        ? runs.some((run) => typeof run?.status === 'string')
        : runs.some((run) => urlsOf(run) !== undefined),
    [EXIT.refused]: () => saw(400, 499),
    [EXIT.key]: () => saw(401),
    [EXIT.account]: () => saw(402, 403) || saw(429),
    [EXIT.notFound]: () => saw(404),
    [EXIT.rateLimited]: () => saw(429),
    [EXIT.serviceBroken]: () => looks.length > 0,
    [EXIT.network]: () => looks.some((each) => !isWhole(each)),
    [EXIT.runFailed]: () =>
      runs.some(
        (run) =>
          typeof run?.status === 'string' && FAILURE_STATUSES.includes(run.status.trim().toLowerCase()),
      ),
    [EXIT.waitTimeout]: () => looks.length > 0,
    [EXIT.downloadFailed]: () => runs.some((run) => urlsOf(run) !== undefined),
  }
  return ground[code]?.() ?? false
}

const inflated = (bytes: Buffer): readonly Buffer[] =>
  [gunzipSync, inflateSync].flatMap((inflate) => {
    try {
      return [inflate(bytes)]
    } catch {
      return []
    }
  })

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

function* ofExit({ ran, exchanges, rows }: Outcome, command: string): Generator<string> {
  const { code } = ran
  if (code === EXIT.bug || code === EXIT.usage || !(Object.values(EXIT) as number[]).includes(code))
    yield `exit code ${code}`
  const posts = exchanges.filter(({ what }) => what === 'create')
  for (const { recipe, ...rest } of posts.slice(0, -1)) {
    const mayRepeat =
      recipe.dies === 'unsent' ||
      (recipe.status === 429 && recipe.dies !== 'head' && !isUsageExceeded({ recipe, ...rest }))
    if (!mayRepeat) yield `a create was sent again after ${recipe.dies ?? recipe.status}`
  }
  const last = posts.at(-1)
  if (!command.startsWith('run')) {
    if (last !== undefined) yield 'a create was sent'
    if (rows.length > 0) yield 'a row of a run that was not created here'
    if (!hasGround(code, exchanges, command)) yield `exit code ${code} without ground`
    return
  }
  if (last === undefined) return yield 'no create was sent'
  const [row, ...others] = rows
  if (others.length > 0) yield `${rows.length} rows of one run`
  const codes = codesOfCreate(last)
  if (codes !== undefined) {
    if (!codes.includes(code)) yield `exit code ${code} after a create that allows ${codes.join(', ')}`
    const mayExist = codes.includes(EXIT.outcomeUnknown)
    if (mayExist && row?.phase !== 'unconfirmed') yield `the journal has ${row?.phase} of an unknown outcome`
    if (!mayExist && row !== undefined) yield `the journal has ${row.phase} of a run that was refused`
    return
  }
  if (row === undefined) return yield 'an accepted run is not in the journal'
  const answered =
    isWhole(last) && isSmall(last)
      ? (parsed(last.bytes.toString('utf8')) as { id?: unknown } | undefined)
      : undefined
  const told =
    typeof answered?.id === 'string' && /^[\w-]{1,200}$/.test(answered.id) ? answered.id : undefined
  if (told !== undefined && row.id !== told) yield `the run ${told} is in the journal as ${row.id}`
  if (row.id === undefined) {
    if (code !== EXIT.outcomeUnknown || row.phase !== 'unconfirmed' || row.key === undefined)
      yield `exit code ${code}, phase ${row.phase} after a 201 without an id`
    return
  }
  if (command.includes('--no-wait')) {
    const id = command.includes('--json') ? printableJson(row.id) : printable(row.id)
    if (code !== EXIT.ok || !ran.stdout.includes(id)) yield `exit code ${code} of an accepted run`
    return
  }
  if (!hasGround(code, exchanges, command)) yield `exit code ${code} without ground`
  const shownId = command.includes('--json') ? row.id : printable(row.id)
  if (code !== EXIT.ok && !ran.stderr.includes(printableJson(shownId).slice(1, -1)))
    yield 'a message about a run leaves out its id'
}

function* ofStreams(
  { ran: { code, stdout, stderr }, exchanges }: Outcome,
  isJson: boolean,
): Generator<string> {
  if (CONTROL.test(stdout) || CONTROL.test(stderr)) yield 'a control character'
  if (/^\s*at .*[:(]/m.test(stderr) || /node:internal/.test(stderr)) yield 'a stack trace'
  const said = (word: string) =>
    exchanges.some(
      ({ bytes, recipe }) =>
        bytes.includes(word) || Object.values(recipe.headers).some((each) => each.includes(word)),
    )
  for (const word of ['undefined', '[object Object]', 'NaN'])
    if (`${stdout}${stderr}`.includes(word) && !said(word)) yield `${word} in what is printed`
  if (!isJson) {
    const strange = linesOf(stderr).find(
      (line) =>
        !/^(error: |warning: | {2}\S|run .+: .* \(.+\)$|still waiting for |Done in |\d+ of \d+ runs )/su.test(
          line,
        ),
    )
    if (strange !== undefined) yield `a line of standard error that nobody wrote: ${strange.slice(0, 80)}`
    if (code !== EXIT.ok && !/^error: /m.test(stderr)) yield 'ended badly without a word'
    return
  }
  for (const line of linesOf(stdout))
    if (keysOf(parsed(line)) !== JSON_KEYS) yield `standard output: ${line.slice(0, 80)}`
  const errors: unknown[] = []
  for (const line of linesOf(stderr)) {
    const value = parsed(line) as { error?: { exit_code?: unknown }; warning?: unknown } | undefined
    if (keysOf(value) === 'error' && keysOf(value?.error) === ERROR_KEYS) errors.push(value?.error?.exit_code)
    else if (keysOf(value) !== 'warning' || keysOf(value?.warning) !== 'message')
      yield `standard error: ${line.slice(0, 80)}`
  }
  if (code === EXIT.ok ? errors.length > 0 : errors.at(-1) !== code)
    yield `exit code ${code}, but errors of ${errors.join(', ') || 'none'}`
}

function* ofKey({ ran, state, exchanges, files }: Outcome): Generator<string> {
  const printed = linesOf(ran.stdout).flatMap((line) => JSON.stringify(parsed(line)) ?? line)
  const places = { stdout: printed.join('\n') + ran.stdout, stderr: ran.stderr, journal: state }
  for (const [place, content] of Object.entries(places))
    for (const spelling of Object.values(spelled))
      if (content.includes(spelling) || content.includes(JSON.stringify(spelling).slice(1, -1)))
        yield `the key is in ${place}`
  for (const name of files.keys()) if (name.includes(API_KEY)) yield 'the key is in the name of a file'
  for (const { what, request } of exchanges) {
    const isKeyed = JSON.stringify(request.headers).includes(API_KEY)
    if (isKeyed !== (what !== 'output')) yield `the key ${isKeyed ? 'went' : 'did not go'} to ${what}`
    if (isKeyed && request.url.origin !== LOOPBACK_URL) yield `the key went to ${request.url.origin}`
  }
}

function* ofFiles({ ran, exchanges, files, strays }: Outcome, command: string): Generator<string> {
  if (strays.length > 0) yield `files outside the folder: ${strays.join(', ')}`
  const delivers = / -[do]\b|^download/.test(command)
  const whole = exchanges
    .filter((each) => each.what === 'output' && isComplete(each) && each.recipe.status === 200)
    .flatMap(({ bytes }) => [bytes, ...inflated(bytes)])
    .map(sha256)
  const names = [...files.keys()].filter((name) => !/(^|\/)\.[^/]+\.part\//.test(name))
  const isSidecar = (name: string): boolean => {
    const file = files.get(name.replace(/\.json$/, ''))
    const record = parsed(files.get(name)?.toString() ?? '') as { sha256?: unknown } | undefined
    return name.endsWith('.json') && file !== undefined && record?.sha256 === sha256(file)
  }
  const outputs = names.filter((name) => !(command.includes('--sidecar') && isSidecar(name)))
  if (!delivers && names.length > 0) yield `files that nobody asked for: ${names.join(', ')}`
  for (const name of outputs) {
    if (!whole.includes(sha256(files.get(name) ?? Buffer.alloc(0)))) yield `${name} is not what a 200 gave`
    const steps = name.split(sep)
    const isTame = steps.every((step) => /^\w[\w.-]{0,130}$/.test(step))
    if (!isTame || steps.length !== (command === 'run -o' ? 2 : 1)) yield `a file called ${name}`
  }
  if (ran.code !== EXIT.ok || !delivers) return
  const urls =
    exchanges
      .map(runOf)
      .map(urlsOf)
      .find((each) => each !== undefined) ?? []
  if (outputs.length !== urls.length) yield `${outputs.length} files of ${urls.length} outputs`
  if (outputs.length !== names.length / (command.includes('--sidecar') ? 2 : 1)) yield 'a sidecar is missing'
}

/** What was wrong; empty when nothing was. */
export function complaintsOf(outcome: Outcome, command: string): readonly string[] {
  return [
    ...ofExit(outcome, command),
    ...ofStreams(outcome, command.includes('--json')),
    ...ofKey(outcome),
    ...ofFiles(outcome, command),
    ...(outcome.elapsedMs > LONGEST_MS ? [`took ${outcome.elapsedMs} ms`] : []),
  ]
}

/** How often each exit code came. */
export type Tally = Map<number, number>

export const sayTally = (tally: Tally): string =>
  [...tally]
    .sort(([one], [other]) => one - other)
    .map(([code, times]) => `${code} ×${times}`)
    .join(', ')

/** The property: nothing to complain of. Counts exit codes on the way. */
export const malformedProperty = (tally: Tally) =>
  fc.asyncProperty(malformedCase, async (each) => {
    const outcome = await runCase(each, COMMANDS[each.command])
    tally.set(outcome.ran.code, (tally.get(outcome.ran.code) ?? 0) + 1)
    const complaints = complaintsOf(outcome, each.command)
    if (complaints.length > 0)
      throw new Error(`${complaints.join('\n')}\n${outcome.ran.stderr.slice(0, 600)}`)
  })
