/**
 * Every string that a service controls, as somebody would choose it who wants the terminal, the shell or the disk of
 * whoever runs `rushes`. What must hold is that of malformed answers, and here that nothing can be passed off as a word
 * of `rushes` itself.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  answer,
  type Case,
  COMMANDS,
  CONTROL,
  CREATE_OK,
  CREATED,
  complaintsOf,
  FAILED,
  inSandbox,
  LOOK_OK,
  ODD_STRINGS,
  OUTPUT_OK,
  type Recipe,
  runCase,
  SUCCEEDED,
} from '../support/malformed.js'

/** Of those that look for the same fault, one. */
const ALIKE = ['.', ' ', '--json', '~/x', 'constructor', '{ext}', 'w'.repeat(70_000)]
const HOSTILE = [...ODD_STRINGS.filter((text) => !ALIKE.includes(text)), 'm'.repeat(2 ** 20)]
const named = (text: string): string =>
  text.length > 60 ? `${text.slice(0, 8)}… of ${text.length}` : JSON.stringify(text)

type Answers = Pick<Case, 'creates' | 'looks' | 'outputs'>
const GOOD: Answers = { creates: [CREATE_OK], looks: [LOOK_OK], outputs: [OUTPUT_OK] }
const headersOf = (text: string): Recipe['headers'] => ({
  location: text,
  'retry-after': text,
  'content-type': text,
  'content-length': text,
  'content-disposition': `attachment; filename="${text}"`,
  'content-encoding': text,
  etag: text,
})

/** Each place of the exchange that a service fills, with the commands that show what stood there. */
const PLACES: Readonly<
  Record<
    string,
    { readonly answers: (text: string) => Answers; readonly commands: readonly (keyof typeof COMMANDS)[] }
  >
> = {
  'a refused create': {
    answers: (text) => ({
      ...GOOD,
      creates: [answer(400, { error: { code: text, message: text } }, headersOf(text))],
    }),
    commands: ['run', 'run --json'],
  },
  'a redirected create': {
    answers: (text) => ({ ...GOOD, creates: [answer(307, {}, { location: `http://h/${text}` })] }),
    commands: ['run', 'run --json'],
  },
  'the id': {
    answers: (id) => ({ ...GOOD, creates: [answer(201, { ...CREATED, id })] }),
    commands: ['run -d --sidecar', 'run -o', 'run -d --json', 'run --no-wait', 'run --no-wait --json'],
  },
  'the id in Location': {
    answers: (text) => ({
      ...GOOD,
      creates: [answer(201, {}, { location: `/api/v1/runs/${encodeURIComponent(text.toWellFormed())}` })],
    }),
    commands: ['run -d', 'run -d --json'],
  },
  'a failed run': {
    answers: (text) => ({
      ...GOOD,
      creates: [answer(201, { ...CREATED, status: text, model: text, created_at: text })],
      looks: [
        answer(200, { ...CREATED, status: text, model: text }),
        answer(200, { ...FAILED, model: text, error: { code: text, message: text }, created_at: text }),
      ],
    }),
    commands: ['run', 'run --json'],
  },
  'a run, looked at once': {
    answers: (text) => ({ ...GOOD, looks: [answer(200, { ...CREATED, status: text, model: text })] }),
    commands: ['status', 'status --json', 'download'],
  },
  'a refused look': {
    answers: (text) => ({
      ...GOOD,
      looks: [
        answer(302, {}, headersOf(text)),
        answer(503, { error: text }, headersOf(text)),
        answer(404, { error: { code: text, message: text } }, headersOf(text)),
      ],
    }),
    commands: ['status', 'status --json'],
  },
  'the URLs': {
    answers: (text) => ({
      ...GOOD,
      looks: [
        answer(200, { ...SUCCEEDED, output: { urls: [`http://h/${text}`, `http://h/?${text}#${text}`] } }),
      ],
    }),
    commands: ['run', 'run --json', 'run -d', 'run -d --sidecar', 'status'],
  },
  'the URLs, from their beginning': {
    answers: (text) => ({ ...GOOD, looks: [answer(200, { ...SUCCEEDED, output: { urls: [text] } })] }),
    commands: ['status', 'status --json'],
  },
  'the headers of an output': {
    answers: (text) => ({
      ...GOOD,
      outputs: [{ status: 200, headers: headersOf(text), body: { json: text } }, OUTPUT_OK],
    }),
    commands: ['run -d', 'run -d --json'],
  },
  'the redirect of an output': {
    answers: (text) => ({
      ...GOOD,
      outputs: [{ status: 302, headers: { location: text }, body: { text: '' } }, OUTPUT_OK],
    }),
    commands: ['download', 'run -d --json'],
  },
}

describe.each(Object.entries(PLACES))('in %s', (_place, { answers, commands }) => {
  it.each(HOSTILE.map((text, at) => [named(text), text, at] as const))('%s', async (_name, text, at) => {
    // Each string with one of the commands, a different one in each place; those for the terminal with two.
    const isForTerminal = CONTROL.test(text) || text.includes('\n')
    const twice = [...commands, ...commands]
    const chosen = twice.slice(at % commands.length).slice(0, isForTerminal ? 2 : 1)
    for (const [number, command] of chosen.entries()) {
      const terminal = (at + number) % 2 === 0
      const outcome = await runCase({ ...answers(text), terminal }, COMMANDS[command])
      expect(complaintsOf(outcome, command), command).toEqual([])
    }
  })
})

/** Ids that a service may give. */
const IDS = [
  'run_1',
  '-rf',
  '--all',
  '-',
  '--',
  '~',
  '~/x',
  '~ffff',
  '{id}',
  '{a,b}',
  '*',
  '?',
  '[a-z]',
  'a b',
  ' ',
  "it's",
  "''",
  '"x"',
  '`touch x`',
  '$(touch x)',
  '$HOME',
  'x;touch x',
  'x&touch x',
  'x|touch x',
  'x>x',
  'x<x',
  '#x',
  '!!',
  '\\',
  '\\\\x',
  "\\'x",
  'A=b',
  '%2e%2e%2f',
  '../../etc/passwd',
  'x\u2028y\u00a0z',
  '\u202egnp',
  'é🦊',
  "'$(touch x)'",
  "-'x",
  '-$(touch x)',
]

const going = answer(200, { ...CREATED, status: 'rendering' })

/** The words that a shell makes of each command, where `rushes` is a function that says them. */
function wordsOf(commands: readonly string[]): readonly (readonly string[])[] {
  const script = ['rushes() { printf "%s\\0" "$@"; printf "\\1"; }', ...commands].join('\n')
  const { stdout, stderr, status } = spawnSync('bash', ['-c', script])
  expect({ status, stderr: stderr.toString() }).toEqual({ status: 0, stderr: '' })
  const said = stdout.toString().split('\u0001').slice(0, -1)
  return said.map((words) => words.split('\0').slice(0, -1))
}

describe('a command to be pasted', () => {
  const shown = (stderr: string): readonly string[] =>
    [...stderr.matchAll(/(?:Resume|Download its outputs) with: (rushes [^\n]*)/g)].map(
      ([, command = '']) => command,
    )

  const cases: readonly (readonly [string, number, (id: string) => Answers, readonly string[]])[] = [
    [
      'wait',
      11,
      (id) => ({ ...GOOD, creates: [answer(201, { id })], looks: [going] }),
      ['-d', '--timeout', '2s'],
    ],
    [
      'download',
      12,
      (id) => ({ ...GOOD, creates: [answer(201, { id })], outputs: [answer(400, {})] }),
      ['-o', "it's {id}/"],
    ],
  ]

  it.each(cases)('rushes %s is for the run that it names', async (verb, code, answers, flags) => {
    await inSandbox(async (play, folder) => {
      const expected: (readonly string[])[] = []
      const commands: string[] = []
      for (const id of IDS) {
        const { ran } = await play({ ...answers(id), terminal: true }, ['run', 'image', 'a fox', ...flags])
        expect(ran.code).toBe(code)
        const [command = '', ...others] = shown(ran.stderr)
        expect(new Set(others)).toEqual(new Set(others.length === 0 ? [] : [command]))
        commands.push(command)
        const kept = flags[0] === '-d' ? ['-d'] : flags
        expected.push([verb, ...kept, ...(id.startsWith('-') ? ['--'] : []), id])
      }
      expect(wordsOf(commands)).toEqual(expected)
      expect(readdirSync(folder)).toEqual([])
    })
  })
})

describe('a run of a hostile name, met again', () => {
  const nothing: Answers = { creates: [], looks: [], outputs: [] }

  // Every other one: what is special about them is seen above.
  it.each(IDS.filter((id, at) => at % 2 === 0 && id.trim() !== '' && id !== '-'))('%s', async (id) => {
    await inSandbox(async (play) => {
      const answers = { ...GOOD, creates: [answer(201, { ...CREATED, id })], terminal: false }
      const { ran } = await play(answers, COMMANDS['run --no-wait'])
      expect(ran.stdout).toBe(`${id}\n`)
      for (const terminal of [false, true]) {
        const listed = await play({ ...nothing, terminal }, ['list'])
        expect(listed.ran.code).toBe(0)
        expect(`${listed.ran.stdout}${listed.ran.stderr}`).not.toMatch(CONTROL)
        const seen = await play({ ...GOOD, terminal }, ['status', '--', id])
        expect(seen.ran.stdout.startsWith(id)).toBe(true)
        expect(new URL(String(seen.exchanges[0]?.request.url)).pathname.split('/')).toHaveLength(5)
      }
      const json = await play({ ...nothing, terminal: false }, ['list', '--json'])
      expect(JSON.parse(json.ran.stdout).id).toBe(id)
      const fetched = await play({ ...GOOD, terminal: false }, ['wait', '--last', '-d', '--sidecar'])
      expect(complaintsOf({ ...fetched, rows: [] }, 'wait -d --sidecar')).toEqual([])
      expect(fetched.files.size).toBe(4)
    })
  })
})

describe('an id with an override', () => {
  const id = 'a\u202eb\u2069c'

  it('is shown without it, kept with it, and asked for with it', async () => {
    await inSandbox(async (play) => {
      const answers = { ...GOOD, creates: [answer(201, { ...CREATED, id })], terminal: false }
      expect((await play(answers, COMMANDS['run --no-wait'])).ran.stdout).toBe('abc\n')
      const listed = await play({ ...GOOD, terminal: false }, ['list', '--json'])
      expect(listed.ran.stdout).toContain(String.raw`a\u202eb\u2069c`)
      expect(JSON.parse(listed.ran.stdout).id).toBe(id)
      for (const words of [
        ['status', id],
        ['wait', '--last'],
      ]) {
        const { ran, exchanges } = await play({ ...GOOD, terminal: true }, words)
        expect(ran.code).toBe(0)
        expect(exchanges.map(({ request }) => new URL(String(request.url)).pathname)).toContain(
          '/api/v1/runs/a%E2%80%AEb%E2%81%A9c',
        )
      }
    })
  })
})

it('URLs are one word each, so that they can be given to xargs', async () => {
  const urls = [
    'http://h/a -o /etc/passwd',
    'http://h/a\n--upload-file\t~/.ssh/id',
    ' http://h/\u202egnp\u0085x ',
  ]
  const looks = [answer(200, { ...SUCCEEDED, output: { urls } })]
  for (const command of ['run', 'status'] as const) {
    const { ran } = await runCase({ ...GOOD, looks, terminal: false }, COMMANDS[command])
    expect(ran.code).toBe(0)
    expect(ran.stdout.match(/http:\S+/g)).toEqual([
      'http://h/a%20-o%20/etc/passwd',
      'http://h/a--upload-file~/.ssh/id',
      'http://h/%E2%80%AEgnp%C2%85x',
    ])
  }
})
