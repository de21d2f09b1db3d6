/**
 * Every string that a service controls, as somebody would choose it who wants the terminal, the shell, the disk or the API key of whoever
 * runs `rushes`. What each answer means is proven in `test/client`; here it is what a whole command line prints, keeps and writes.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { resumeCommand } from '../../src/cli/settings/globals.js'
import { EXIT, OWN_CODES } from '../../src/errors.js'
import type { HttpRequest } from '../../src/host/http.js'
import { quoteWord } from '../../src/host/shell.js'
import type { Ran } from '../support/cli.js'
import {
  filesBelow,
  LOOPBACK_URL,
  ONE_PIXEL_PNG,
  outputOf,
  rowsOf,
  runCli,
  type Scripted,
  scriptedList,
  temporaryFolder,
} from '../support/index.js'
import { stateBytes } from '../support/journal.js'

/** Long enough to be redacted, with characters that JSON and URLs write in other ways. */
const API_KEY = 'rk_hostile/S3cret+9f8e7d6c'
const spelled = (write: (character: string) => string) => [...API_KEY].map(write).join('')
const code = (character: string) => character.charCodeAt(0).toString(16)
const KEY = {
  plain: API_KEY,
  json: spelled((each) => `\\u00${code(each)}`),
  slashes: API_KEY.replaceAll('/', '\\/'),
  percent: spelled((each) => `%${code(each)}`),
  component: encodeURIComponent(API_KEY),
}

/** Of C0 only the end of a line, and the tab between cells, are for the terminal. */
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/

// What the service answers.

const CREATED = { id: 'run_1', model: 'acme/still-1', status: 'queued', created_at: '2026-01-01T00:00:00Z' }
const SUCCEEDED = {
  ...CREATED,
  status: 'succeeded',
  output: { urls: [`${LOOPBACK_URL}/outputs/1.png`, `${LOOPBACK_URL}/outputs/2.png`] },
  finished_at: '2026-01-01T00:00:09Z',
}
const OUTPUT: Scripted = { status: 200, headers: { 'content-type': 'image/png' }, body: ONE_PIXEL_PNG }
const answer = (status: number, body: unknown, headers: Scripted['headers'] = {}): Scripted => ({
  status,
  headers,
  body,
})

/** Answers in turn, the last one for all further requests. */
interface Answers {
  readonly create?: readonly Scripted[]
  readonly look?: readonly Scripted[]
  readonly output?: readonly Scripted[]
}

function serviceOf({
  create = [answer(201, CREATED)],
  look = [answer(200, SUCCEEDED)],
  output = [OUTPUT],
}: Answers) {
  const left = { create: [...create], look: [...look], output: [...output] }
  return scriptedList((request) => {
    // The API is asked for JSON, the host of an output for whatever there is.
    const isOutput = request.headers.accept !== 'application/json'
    const turn = left[request.method === 'POST' ? 'create' : isOutput ? 'output' : 'look']
    const next = (turn.length > 1 ? turn.shift() : turn[0]) as Scripted
    return turn === left.look ? ofRun(next, request) : next
  })
}

/** Replaces the id of an answer by the one that was asked for: an answer for another run is not valid. */
function ofRun(answer: Scripted, { url }: HttpRequest): Scripted {
  const { body } = answer
  if (typeof body !== 'object' || body === null || (body as { id?: unknown }).id !== CREATED.id) return answer
  return { ...answer, body: { ...body, id: decodeURIComponent(url.pathname.split('/').at(-1) ?? '') } }
}

// What a command makes of it.

interface Played extends Ran {
  readonly requests: readonly HttpRequest[]
  /** In the folder that the command ran in. */
  readonly files: readonly string[]
  /** What must not be; empty when all is well. */
  readonly complaints: readonly string[]
}

interface Sandbox {
  readonly home: string
  play(words: readonly string[], answers?: Answers, terminal?: boolean): Promise<Played>
}

/** A home whose commands run some folders deep, so that a file outside its place is seen. */
function createSandbox(): Sandbox {
  const home = realpathSync(temporaryFolder())
  const folder = join(home, 'a', 'b', 'c')
  mkdirSync(folder, { recursive: true })
  return {
    home,
    async play(words, answers = {}, terminal = false) {
      const before = process.cwd()
      process.chdir(folder)
      try {
        const { fetch, requests } = serviceOf(answers)
        // A terminal gets lines instead of the spinner, which needs a real one.
        const env = {
          RUSHES_BASE_URL: LOOPBACK_URL,
          RUSHES_API_KEY: API_KEY,
          RUSHES_IMAGE_MODEL: 'acme/still-1',
          CI: '1',
        }
        const tty = { stdout: terminal, stderr: terminal }
        const ran = await runCli(words, { env, home, fetch, tty })
        const complaints = [
          ...ofStreams(ran, words),
          ...ofKey(ran, requests, [stateBytes(home).toString(), ...filesBelow(home)]),
          ...ofFiles(home, words.includes('-o') ? 2 : 1),
        ]
        return { ...ran, requests, files: filesBelow(folder), complaints }
      } finally {
        process.chdir(before)
      }
    },
  }
}

const DOCUMENTED: readonly number[] = Object.values(EXIT).filter(
  (each) => each !== EXIT.bug && each !== EXIT.usage,
)
// The id of a run is alone on its line if its long status does not fit.
const OUR_LINE =
  /^(error: |warning: | {2}\S|.+: .* \(\d.*\)$|still waiting for |Done in |\d+ of \d+ runs |run_\w+:$)/su

function* ofStreams({ code, stdout, stderr }: Ran, words: readonly string[]): Generator<string> {
  if (!DOCUMENTED.includes(code)) yield `exit code ${code}`
  if (CONTROL.test(stdout) || CONTROL.test(stderr)) yield 'a control character'
  if (/^\s*at .*[:(]/m.test(stderr) || /node:internal/.test(stderr)) yield 'a stack trace'
  // `runCli` holds JSON against the published schemas.
  if (words.includes('--json')) return
  const strange = stderr.split('\n').find((line) => line !== '' && !OUR_LINE.test(line))
  if (strange !== undefined) yield `a line of another's: ${strange.slice(0, 80)}`
  if (code !== EXIT.ok && !/^error: /m.test(stderr)) yield 'failed without a message'
}

function* ofKey(
  { stdout, stderr }: Ran,
  requests: readonly HttpRequest[],
  kept: readonly string[],
): Generator<string> {
  const everything = [stdout, stderr, ...kept].join('\n')
  for (const spelling of Object.values(KEY))
    if ([spelling, JSON.stringify(spelling).slice(1, -1)].some((each) => everything.includes(each)))
      yield `the key is there as ${spelling}`
  for (const { url, headers } of requests)
    if (
      JSON.stringify(headers).includes(API_KEY) !==
      (headers.accept === 'application/json' && url.origin === LOOPBACK_URL)
    )
      yield `the key of a request to ${url.href.slice(0, 80)}`
}

function* ofFiles(home: string, mostSteps: number): Generator<string> {
  for (const name of filesBelow(home)) {
    const [, inside] = /^a\/b\/c\/(.*)$/.exec(name) ?? []
    if (inside === undefined && !/^(state|config)\//.test(name)) yield `a file outside the folder: ${name}`
    const steps = (inside ?? '').split('/').filter((step) => !/^(\.[^/]+\.part)?$/.test(step))
    if (steps.length > mostSteps || steps.some((step) => !/^\w[\w.-]{0,130}$/.test(step)))
      yield `a file named ${inside}`
  }
}

const WAIT = ['--timeout', '3m']
const RUN = ['run', 'image', 'a fox']
const COMMANDS = {
  run: [...RUN, ...WAIT],
  'run --json': [...RUN, ...WAIT, '--json'],
  'run -d': [...RUN, ...WAIT, '-d'],
  'run -d --sidecar': [...RUN, ...WAIT, '-d', '--sidecar'],
  'run -o': [...RUN, ...WAIT, '-o', '{id}/{name}-{index}.{ext}'],
  'run -d --json': [...RUN, ...WAIT, '-d', '--json'],
  'run --no-wait': [...RUN, '--no-wait'],
  'run --no-wait --json': [...RUN, '--no-wait', '--json'],
  status: ['status', 'run_earlier'],
  'status --json': ['status', 'run_earlier', '--json'],
  download: ['download', 'run_earlier'],
} as const satisfies Record<string, readonly string[]>
type CommandName = keyof typeof COMMANDS

const headersOf = (text: string): Scripted['headers'] => ({
  location: text,
  'retry-after': text,
  'content-type': text,
  'content-length': text,
  'content-disposition': `attachment; filename="${text}"`,
  'content-encoding': text,
  etag: text,
})
const errorOf = (text: string) => ({ error: { code: text, message: text } })

interface Place {
  readonly answers: (text: string) => Answers
  readonly commands: readonly CommandName[]
  readonly namesFiles?: true
}

/** Each place of the exchange that a service fills, with the commands that show what it holds. */
const PLACES: Readonly<Record<string, Place>> = {
  'a refused create': {
    answers: (text) => ({ create: [answer(400, errorOf(text), headersOf(text))] }),
    commands: ['run', 'run --json'],
  },
  'a redirected create': {
    answers: (text) => ({ create: [answer(307, {}, { location: `http://h/${text}` })] }),
    commands: ['run', 'run --json'],
  },
  'the id': {
    answers: (id) => ({ create: [answer(201, { ...CREATED, id })] }),
    commands: ['run -d --sidecar', 'run -o', 'run -d --json', 'run --no-wait', 'run --no-wait --json'],
    namesFiles: true,
  },
  'the id in Location': {
    answers: (text) => ({
      create: [answer(201, {}, { location: `/api/v1/runs/${encodeURIComponent(text.toWellFormed())}` })],
    }),
    commands: ['run -d', 'run -d --json'],
    namesFiles: true,
  },
  'a failed run': {
    answers: (text) => ({
      create: [answer(201, { ...CREATED, status: text, model: text, created_at: text })],
      look: [
        answer(200, { ...CREATED, status: text, model: text }),
        answer(200, { ...CREATED, status: 'failed', model: text, ...errorOf(text), created_at: text }),
      ],
    }),
    commands: ['run', 'run --json'],
  },
  'a running run': {
    answers: (text) => ({ look: [answer(200, { ...CREATED, status: text, model: text })] }),
    commands: ['status', 'status --json', 'download'],
  },
  'a refused status request': {
    answers: (text) => ({
      look: [
        answer(302, {}, headersOf(text)),
        answer(503, { error: text }, headersOf(text)),
        answer(404, errorOf(text), headersOf(text)),
      ],
    }),
    commands: ['status', 'status --json'],
  },
  'the URLs': {
    answers: (text) => ({
      look: [
        answer(200, { ...SUCCEEDED, output: { urls: [`http://h/${text}`, `http://h/?${text}#${text}`] } }),
      ],
    }),
    commands: ['run', 'run --json', 'run -d', 'run -d --sidecar', 'status'],
    namesFiles: true,
  },
  'a URL, whole': {
    answers: (text) => ({ look: [answer(200, { ...SUCCEEDED, output: { urls: [text] } })] }),
    commands: ['status', 'status --json'],
  },
  'the headers of an output': {
    answers: (text) => ({ output: [answer(200, text, headersOf(text)), OUTPUT] }),
    commands: ['run -d', 'run -d --json'],
    namesFiles: true,
  },
  'the redirect of an output': {
    answers: (text) => ({ output: [answer(302, '', { location: text }), OUTPUT] }),
    commands: ['download', 'run -d --json'],
    namesFiles: true,
  },
}

/** Each with every command: control sequences with overrides, and the key with a forged line. */
const FOR_THE_TERMINAL = [
  '\u001b]52;c;ZXZpbA==\u0007\u001b[2J\u009b31m\u009d0;x\u009c\u202egnp.exe\u202c \u2066x\u2069',
  `bad key ${API_KEY}\nerror: a line of its own\r\nb`,
]
const FOR_THE_DISK = [
  ...String.raw`.. ../../etc/passwd /etc/passwd C:\Windows\x %2e%2e%2f CON .ssh -rf {id}`.split(' '),
  'a\u0000b',
]
/** Each with one command, another one in each place. */
const ODD = [
  '',
  '__proto__',
  '$(touch x) `id` \' " ; | & > < * ? ! #',
  '\udc00\ud800',
  'x'.repeat(300),
  // Longer than every limit on a part of an answer.
  'm'.repeat(2 ** 17),
]

const named = (text: string): string =>
  text.length > 60 ? `${text.slice(0, 8)}… of ${text.length}` : JSON.stringify(text)

describe.each(Object.entries(PLACES))('in %s', (_, { answers, commands, namesFiles }) => {
  const odd = [...ODD, ...(namesFiles ? FOR_THE_DISK : [])]
  const cases = [
    ...commands.flatMap((command) => FOR_THE_TERMINAL.map((text) => [command, text] as const)),
    ...odd.map((text, at) => [commands[at % commands.length] ?? expect.unreachable(), text] as const),
  ]

  it.each(cases.map(([command, text], at) => [command, named(text), text, at % 2 === 0] as const))(
    '%s: %s',
    async (command, _name, text, terminal) => {
      const { complaints } = await createSandbox().play(COMMANDS[command], answers(text), terminal)
      expect(complaints).toEqual([])
    },
  )
})

const deep = (object: object) =>
  `${JSON.stringify(object).slice(0, -1)},"extra":${'['.repeat(10_000)}${']'.repeat(10_000)}}`
const refused = (body: unknown, status = 400): Answers => ({ create: [answer(status, body)] })

it.each<[string, CommandName, Answers, number, phase: string | undefined]>([
  [
    'a created run is too deep to be written',
    'run --no-wait --json',
    { create: [answer(201, deep(CREATED))] },
    0,
    'running',
  ],
  [
    'a finished run is too deep to be written',
    'run -d --json',
    { look: [answer(200, deep(SUCCEEDED))] },
    0,
    'succeeded',
  ],
  [
    'the same run is looked at',
    'status --json',
    { look: [answer(200, deep({ ...SUCCEEDED, id: 'run_earlier' }))] },
    0,
    undefined,
  ],

  ['the id is the key in escapes of JSON', 'run', refused(`{"id":"${KEY.slashes}"}`, 201), 13, 'unconfirmed'],
  [
    'an output redirects to an invalid URL that has the key',
    'run -d',
    { output: [answer(302, '', { location: `http://[${KEY.plain}` })] },
    12,
    'succeeded',
  ],

  [
    'Location has the key and the body breaks off',
    'run',
    { create: [{ ...answer(201, '{', { location: `/x/${KEY.percent}` }), cut: true }] },
    13,
    'unconfirmed',
  ],

  ...Object.keys(OWN_CODES).map((own): [string, CommandName, Answers, number, undefined] => [
    `a 404 has our code ${own}`,
    'run --json',
    refused({ code: own }, 404),
    3,
    undefined,
  ]),
])('what was wrong once %s: %s', async (_, command, answers, exit, phase) => {
  const { home, play } = createSandbox()
  const { code, complaints } = await play(COMMANDS[command], answers)
  expect({ code, complaints, phases: rowsOf(home).map((row) => row.phase) }).toEqual({
    code: exit,
    complaints: [],
    phases: phase === undefined ? [] : [phase],
  })
})

/** Ids that a service may give. */
const IDS = [
  ...'run_1 -rf --all - -- ~ ~/x ~ffff {id} {a,b} * ? [a-z] x>x x<x #x !! $HOME A=b %2e%2e%2f é🦊 ../../x'.split(
    ' ',
  ),
  ...String.raw`it's '' "x" \ \\x \'x -'x`.split(' '),
  ...[
    'a b',
    ' ',
    'x;touch x',
    'x&touch x',
    'x|touch x',
    '`touch x`',
    '$(touch x)',
    "'$(touch x)'",
    '-$(touch x)',
  ],
  ...['x\u2028y\u00a0z', '\u202egnp'],
]

/** The words that a shell makes of each command, where `rushes` is a function that says them. */
function wordsOf(commands: readonly string[]): readonly (readonly string[])[] {
  const script = ['rushes() { printf "%s\\0" "$@"; printf "\\1"; }', ...commands].join('\n')
  const { stdout, stderr, status } = spawnSync('bash', ['-c', script])
  expect({ status, stderr: stderr.toString() }).toEqual({ status: 0, stderr: '' })
  const said = stdout.toString().split('\u0001').slice(0, -1)
  return said.map((words) => words.split('\0').slice(0, -1))
}

it('a command to be pasted has the same words in bash, whatever the id and the folder are', () => {
  const folder = "it's {id}/"
  const commands = IDS.map((id) => resumeCommand({ local: false }, 'wait', [id], ['-o', quoteWord(folder)]))
  expect(wordsOf(commands)).toEqual(
    IDS.map((id) => ['wait', '-o', folder, ...(id.startsWith('-') ? ['--'] : []), id]),
  )
})

it.each<[string, number, Answers, readonly string[]]>([
  ['wait', 11, { look: [answer(200, { ...CREATED, status: 'rendering' })] }, ['-d', '--timeout', '2s']],
  ['download', 12, { output: [answer(400, {})] }, ['-o', "it's {id}/"]],
])('a command to be pasted rushes %s is shown as it is', async (verb, exit, answers, flags) => {
  for (const id of ["-it's $(touch x)", 'x\u2028y', '\u202egnp']) {
    const play = createSandbox().play
    const ran = await play([...RUN, ...flags], { ...answers, create: [answer(201, { id })] }, true)
    expect(ran.code).toBe(exit)
    const shown = [...ran.stderr.matchAll(/(?:Resume|Download its outputs) with\s+`(rushes [^\n]*)`\./g)]
    const commands = new Set(shown.map(([, command = '']) => command))
    const kept = flags[0] === '-d' ? ['-d'] : flags
    expect(wordsOf([...commands])).toEqual([[verb, ...kept, ...(id.startsWith('-') ? ['--'] : []), id]])
    expect(ran.files).toEqual([])
  }
})

it.each([
  ['../../etc/passwd', '../../etc/passwd', '..%2F..%2Fetc%2Fpasswd'],
  ["-'$(touch x)", "-'$(touch x)", "-'%24(touch%20x)"],
  ['%2e%2e%2f', '%2e%2e%2f', '%252e%252e%252f'],
  ['a\u202eb\u2069c', 'abc', 'a%E2%80%AEb%E2%81%A9c'],
])(
  'a run with a hostile id %j is shown without overrides, kept and requested as it is',
  async (id, shown, segment) => {
    const { play } = createSandbox()
    const created = await play(COMMANDS['run --no-wait'], { create: [answer(201, { ...CREATED, id })] })
    expect(created.stdout).toBe(`${shown}\n`)
    for (const terminal of [false, true]) {
      expect((await play(['list'], {}, terminal)).complaints).toEqual([])
      const { stdout, requests } = await play(['status', '--', id], {}, terminal)
      expect(stdout.startsWith(shown)).toBe(true)
      expect(requests.map(({ url }) => url.pathname)).toEqual([`/api/v1/runs/${segment}`])
    }
    const { stdout } = await play(['list', '--json'])
    expect(JSON.parse(stdout).id).toBe(id)
    expect(stdout).not.toMatch(CONTROL)
    const waited = await play(['wait', '--last', '-d', '--sidecar'])
    expect(waited).toMatchObject({ code: 0, complaints: [] })
    expect(waited.files).toHaveLength(4)
  },
)

it.each(['run', 'status'] as const)('%s prints each URL as one word, for xargs', async (command) => {
  const urls = [
    'http://h/a -o /etc/passwd',
    'http://h/a\n--upload-file\t~/.ssh/id',
    ' http://h/\u202egnp\u0085x ',
  ]
  const look = [answer(200, { ...SUCCEEDED, output: { urls } })]
  const stdout = outputOf(await createSandbox().play(COMMANDS[command], { look }))
  expect(stdout.match(/http:\S+/g)).toEqual([
    'http://h/a%20-o%20/etc/passwd',
    'http://h/a--upload-file~/.ssh/id',
    'http://h/%E2%80%AEgnp%C2%85x',
  ])
})
