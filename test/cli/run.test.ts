import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { createInterrupts } from '../../src/host/interrupts.js'
import {
  createCliService,
  createCommandedEngine,
  createHome,
  LOOPBACK_URL,
  ONE_PIXEL_PNG,
  type RunOptions,
  runCli,
  SET,
  scripted,
  temporaryFolder,
} from '../support/index.js'
import { ROOT } from '../support/project.js'
import { SCHEMAS } from '../support/schemas.js'

const FILE = join(ROOT, 'package.json')

it('run against the service prints one URL a line and says on standard error how it went', async () => {
  const service = await createCliService()
  const { code, stdout, stderr, opened } = await service.run('run image a red fox')
  expect({ code, opened }).toEqual({ code: 0, opened: [] })
  expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:1\/outputs\/\S+\n$/)
  expect(stderr).toMatch(/^(run_\w+: \w+ \(\d+ s\)\n)+$/)
  expect(JSON.parse(Buffer.from(service.requests[0]?.body ?? []).toString())).toEqual({
    model: 'rushes/preview-image',
    input: { prompt: 'a red fox' },
  })
})

it('run against the service prints every key of a run as JSON, nothing on standard error, and sends the API key to the API alone', async () => {
  const service = await createCliService()
  const folder = temporaryFolder()
  const words = ['run', 'image', 'a fox', '--json', '-o', `${folder}/{kind}-{index}.{ext}`]
  const { code, stdout, stderr } = await service.run(words)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const run = JSON.parse(stdout)
  expect(Object.keys(run)).toEqual(SCHEMAS.get('run')?.required)
  expect(run).toMatchObject({
    ...{ kind: 'image', model: 'rushes/preview-image', status: 'succeeded', error: null },
  })
  expect(run.files).toEqual([
    {
      path: `${folder}/image-1.png`,
      bytes: ONE_PIXEL_PNG.byteLength,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      url: run.output.urls[0],
      content_type: 'image/png',
    },
  ])
  expect(readFileSync(`${folder}/image-1.png`).equals(ONE_PIXEL_PNG)).toBe(true)
  const downloads = service.requests.filter(({ url }) => url.pathname.startsWith('/outputs/'))
  expect(downloads).toHaveLength(1)
  expect(JSON.stringify(downloads.map(({ headers }) => headers))).not.toContain(service.apiKey)
})

it('run against the service prints ids at once with --no-wait, and wait picks them up from standard input', async () => {
  const service = await createCliService()
  const created = await service.run('run image fox -n 3 --no-wait')
  expect(created.stdout).toMatch(/^(run_\w+\n){3}$/)
  const waited = await service.run('wait - --json', { stdin: created.stdout })
  expect(waited.code).toBe(0)
  const ids = [...waited.stdout.matchAll(/^\{"id":"(\w+)"/gm)].map(([, id]) => id)
  expect(ids).toEqual(created.stdout.trim().split('\n'))
})

it('run against the service writes the bytes of one output to standard output', async () => {
  const service = await createCliService()
  const { code, bytes } = await service.run('run image fox -o -')
  expect(code).toBe(0)
  expect(bytes.equals(ONE_PIXEL_PNG)).toBe(true)
})

it('run against the service refuses a file in the way before anything is sent, and replaces it with --overwrite', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'fox.png')
  writeFileSync(path, 'mine')
  const refused = await service.run(`run image fox -o ${path}`)
  expect(refused.code).toBe(2)
  expect(service.requests).toHaveLength(0)
  expect(readFileSync(path, 'utf8')).toBe('mine')
  expect((await service.run(`run image fox -o ${path} --overwrite`)).code).toBe(0)
  expect(readFileSync(path).equals(ONE_PIXEL_PNG)).toBe(true)
})

it('run against the service says which statuses a run went through, once each, and a sign of life each minute', async () => {
  const service = await createCliService({ engine: createCommandedEngine() })
  const { code, stderr } = await service.run('run image fox --timeout 150s')
  expect(code).toBe(11)
  expect(stderr.match(/: processing/g)).toHaveLength(1)
  expect(stderr.match(/^still waiting for 1 of 1 run/gm)).toHaveLength(2)
  expect(stderr).toMatch(
    /error: (run_\w+) is still running after 2 min 30 s\.\n {2}Resume with `rushes wait \1`\.\n/,
  )
})

it('run against the service exits 10 with the reason of a run that failed, and prints its object all the same', async () => {
  const failing = { render: async () => Promise.reject(new Error('out of paint')) }
  const service = await createCliService({ engine: failing })
  const { code, stdout, stderr } = await service.run('run image fox --json')
  expect(code).toBe(10)
  expect(JSON.parse(stdout)).toMatchObject({
    status: 'failed',
    output: null,
    error: { code: 'run_failed' },
  })
  expect(JSON.parse(stderr).error).toMatchObject({
    code: 'run_failed',
    exit_code: 10,
    run_id: JSON.parse(stdout).id,
  })
  expect(JSON.parse(stderr).error.message).toContain('out of paint')
})

const TERMINAL = { stdin: true, stderr: true }

/** Runs the command, and counts the runs that it creates. */
async function create(words: readonly string[], options: Partial<RunOptions> = {}) {
  const { fetch, requests } = scripted({ status: 201, body: { id: 'r1', status: 'queued' } })
  // Without a spinner, which needs a real terminal.
  const env = { ...SET, TERM: 'dumb' }
  const ran = await runCli(['run', 'image', 'fox', '--no-wait', '-n', ...words], { fetch, env, ...options })
  return { ...ran, created: requests.length }
}

it.each([
  ['y\n', 0, 21],
  ['no\n', 2, 0],
  ['', 2, 0],
])('more than 20 runs are created on a terminal after a question: %j', async (stdin, code, created) => {
  const ran = await create(['21'], { stdin, tty: TERMINAL })
  expect(ran).toMatchObject({ code, created, stdout: 'r1\n'.repeat(created) })
  expect(ran.stderr).toContain(
    'Create 21 runs of acme/still-1? No estimate: acme/still-1 has no price. [y/N] ',
  )
})

it.each([
  ['--yes', ['21', '--yes'], TERMINAL],
  ['20 runs', ['20'], TERMINAL],
  ['a pipe', ['21'], { stderr: true }],
  ['standard error in a file', ['21'], { stdin: true }],
  ['--json', ['21', '--json'], TERMINAL],
])('more than 20 runs are created without a question with %s', async (_, words, tty) => {
  const { code, stderr, created } = await create(words, { tty })
  expect({ code, created }).toEqual({ code: 0, created: Number(words[0]) })
  expect(stderr).not.toContain('[y/N]')
})

it('more than 20 runs are announced where nobody can be asked', async () => {
  const announced = 'Creating 21 runs of acme/still-1. No estimate: acme/still-1 has no price.\n'
  expect((await create(['21'])).stderr.startsWith(announced)).toBe(true)
  for (const words of [['20'], ['21', '--yes'], ['21', '--quiet']])
    expect((await create(words)).stderr).not.toContain('Creating')
})

it('more than 20 runs need an answer: Ctrl-C creates nothing', async () => {
  const interrupts = createInterrupts()
  interrupts.interrupt('SIGINT')
  expect(await create(['21'], { interrupts, tty: TERMINAL })).toMatchObject({ code: 130, created: 0 })
})

const tty = { stderr: true }
// Without a spinner, whose frames would be on standard error too.
const env = { TERM: 'dumb' }

it('the last line on a terminal says files and seconds', async () => {
  const service = await createCliService()
  const folder = temporaryFolder()
  const one = await service.run(`run image fox -o ${folder}/`, { tty, env })
  expect(one.stderr).toMatch(/\nDone in \d\.\d s: 1 file \(\d+ B\)\n$/)
  const two = await service.run(`run image fox -n 2 -o ${folder}/`, { tty, env })
  expect(two.stderr).toMatch(/\n2 of 2 runs done in \d\.\d s: 2 files \(\d+ B\)\n$/)
  const urls = await service.run('run image fox', { tty, env })
  expect(urls.stderr).toMatch(/\nDone in \d\.\d s\n$/)
})

it.each([
  ['in a pipe', [], {}],
  ['with --quiet', ['--quiet'], tty],
  ['with --json', ['--json'], tty],
  ['with --no-wait', ['--no-wait'], tty],
])('the last line on a terminal is missing %s', async (_, words, streams) => {
  const service = await createCliService()
  const { stderr } = await service.run(['run', 'image', 'fox', ...words], { tty: streams, env })
  expect(stderr).not.toMatch(/done/i)
})

const cases: readonly (readonly [string, readonly string[], RegExp])[] = [
  [
    'several of them at once',
    ['--duration', '7', '--aspect-ratio', '16x9', 'fox'],
    /--aspect-ratio.*16:9.*--duration/,
  ],
  ['no prompt', [], /Missing prompt\.\n {2}Example: `rushes run video/],
  ['an empty prompt', ['  '], /prompt is empty/],
  ['two prompts', ['fox', '--prompt', 'dog'], /More than one prompt was given: the arguments and --prompt/],
  ['two users of standard input', ['-', '-i', '-'], /both read standard input/],
  ['nothing on standard input', ['-'], /Standard input is empty/],
  ['a reference that is no image', ['fox', '-i', FILE], /not a PNG, JPEG, WebP, GIF or AVIF/],
  ['a reference that is not there', ['fox', '-i', 'no-such.png'], /no-such\.png: no such file/],
  [
    'a file in the place of the output folder',
    ['fox', '-o', `${FILE}/x.png`],
    /Cannot write outputs: \S*package\.json is a file, not a folder\. Nothing was sent\./,
  ],
  ['a prompt file that is not there', ['--prompt-file', 'no.txt'], /no\.txt: no such file/],
  ['an input that is no object', ['--input', '[1]'], /not a JSON object/],
  [
    'an input that is no JSON',
    ['--input', '{"prompt": "a fox",}'],
    /--input is not valid JSON: Expected double-quoted property name in JSON at position 19/,
  ],
  [
    'a number in an input that would be sent as another one',
    ['--input', '{"prompt": "a fox", "x": {"seed": 36893488147419103233}}'],
    /--input: x\.seed cannot be sent without a change: it is too large, or has too many digits\./,
  ],
  [
    'a device as a prompt file',
    ['--prompt-file', '/dev/zero'],
    /\/dev\/zero is too large; the limit is 64 MiB/,
  ],
  [
    'a deep input',
    ['--input', `{"x":${'['.repeat(10_000)}${']'.repeat(10_000)}}`],
    /nested more than 500 levels deep/,
  ],
  ['a count that is none', ['fox', '-n', '0'], /--count: "0"/],
  ['a wait limit without a unit', ['fox', '--timeout', '90'], /not a valid duration/],
  ['bytes for a terminal of several runs', ['fox', '-o', '-', '-n', '2'], /one run/],
  ['a download without waiting', ['fox', '--no-wait', '-d'], /--no-wait/],
]
it.each(cases)('what is wrong is said before anything is sent %s', async (_, argv, message) => {
  const { code, stdout, stderr } = await runCli(['run', 'video', ...argv], { env: SET, stdin: '' })
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(message)
})

it('with --json, what is wrong is one JSON object, before anything is sent', async () => {
  const { code, stderr } = await runCli('--json run video fox -n 0', { env: SET })
  expect(code).toBe(2)
  expect(JSON.parse(stderr).error).toMatchObject({
    ...{ code: 'usage', exit_code: 2, run_id: null, http_status: null },
  })
})

it('everything that is missing is named at once, before anything is sent', async () => {
  const { code, stderr } = await runCli('run image fox')
  expect(code).toBe(2)
  expect(stderr).toMatchInlineSnapshot(`
      "error: Not set: service URL, image model, API key.
        Set the service URL with --base-url <url>, RUSHES_BASE_URL or \`rushes config set baseUrl <url>\`. To try rushes without a service, or for local runs, add --local.
        Set the model with --model <provider/name>, RUSHES_IMAGE_MODEL or \`rushes config set models.image <provider/name>\`. A local service (\`rushes serve\`) has rushes/preview-image.
        Set the key with \`rushes login\`, RUSHES_API_KEY, RUSHES_API_KEY_FILE or RUSHES_API_KEY_COMMAND.
      "
    `)
})

it.each([
  [['--base-url', 'http://example.com'], 2, 'insecure_url'],
  [['--base-url', 'ftp://example.com'], 2, 'usage'],
  [['--local', '--base-url', LOOPBACK_URL], 2, 'usage'],
])('what is wrong is said before anything is sent %s', async (flags, exit, code) => {
  const ran = await runCli(['run', 'image', 'fox', '--json', ...flags], { env: SET })
  expect(ran.code).toBe(exit)
  expect(JSON.parse(ran.stderr).error.code).toBe(code)
})

it.each([
  [['--prompt', '--json'], '--json'],
  [['--prompt', '-q'], '-q'],
  [['--', '--dry-run'], '--dry-run'],
  [['run:abc'], 'run:abc'],
  [['@file.json'], '@file.json'],
  [['https://example.com'], 'https://example.com'],
  [['a', 'fox', '-', 'running'], 'a fox - running'],
  [['42'], '42'],
])('the prompt stays text %j', async (argv, prompt) => {
  const { stdout, stderr } = await runCli(['run', 'image', '--local', '--dry-run', '--quiet', ...argv])
  expect(stderr).toBe('')
  expect(JSON.parse(stdout)).toEqual({ model: 'rushes/preview-image', input: { prompt } })
})

function* endless() {
  const chunk = Buffer.alloc(1024 * 1024, 'y\n')
  for (;;) yield chunk
}

it.each([['run image -'], ['wait -'], ['batch -']])(
  'an endless standard input of %j is a usage error, and is read no further',
  async (argv) => {
    const stdin = Readable.from(endless())
    const { code, stdout, stderr } = await runCli(argv, { env: SET, stdin })
    expect({ code, stdout, isClosed: stdin.destroyed }).toEqual({ code: 2, stdout: '', isClosed: true })
    expect(stderr).toContain('Standard input is too large; the limit is 64 MiB. Nothing was sent.')
  },
)

it('an endless standard input of small pieces leaves room for a signal', async () => {
  const interrupts = createInterrupts()
  let pieces = 0
  const stdin = new Readable({
    read() {
      pieces += 1
      if (pieces === 100) interrupts.interrupt('SIGINT')
      setImmediate(() => this.push('y\n'))
    },
  })
  const { code } = await runCli('run image -', { env: SET, stdin, interrupts })
  expect(code).toBe(130)
  stdin.destroy()
  expect(pieces).toBeLessThan(10_000)
})

it('the input may begin with a byte order mark, and must be UTF-8', async () => {
  const path = join(temporaryFolder(), 'input.json')
  const run = () => runCli(`run image --dry-run --input @${path}`, { env: SET })
  writeFileSync(path, '\ufeff{"prompt": "a fox"}')
  expect(JSON.parse((await run()).stdout).input).toEqual({ prompt: 'a fox' })
  writeFileSync(path, Buffer.from('{"prompt": "caf\xe9"}', 'latin1'))
  expect(await run()).toMatchObject({ code: 2, stdout: '' })
  expect((await run()).stderr).toContain(`error: ${path} is not UTF-8 text.`)
})

it('the input sends images as data: URLs, typed by their bytes, and sources one per line from standard input', async () => {
  const path = join(temporaryFolder(), 'named-wrongly.jpg')
  writeFileSync(path, ONE_PIXEL_PNG)
  const { stdout } = await runCli('run image fox --local --dry-run -i -', {
    stdin: `${path}\nhttps://example.com/a.png\n`,
  })
  expect(JSON.parse(stdout).input.image_urls).toEqual([
    `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`,
    'https://example.com/a.png',
  ])
  const bytes = await runCli('run image fox --local --dry-run -i -', {
    stdin: ONE_PIXEL_PNG,
  })
  expect(JSON.parse(bytes.stdout).input.image_urls).toHaveLength(1)
})

it('the input takes flag before environment before file, and an empty variable as unset', async () => {
  const { home, run } = createHome({ env: {} })
  const state = join(home, 'untouched')
  await run('config set models.image file/model')
  const model = async (argv: readonly string[], env: Record<string, string>) =>
    JSON.parse(
      (await run(['run', 'image', 'fox', '--dry-run', ...argv], { env: { ...env, RUSHES_STATE_DIR: state } }))
        .stdout,
    ).model
  expect(await model([], {})).toBe('file/model')
  expect(await model([], { RUSHES_IMAGE_MODEL: '' })).toBe('file/model')
  expect(await model([], { RUSHES_IMAGE_MODEL: 'env/model' })).toBe('env/model')
  expect(await model(['--model', 'flag/model'], { RUSHES_IMAGE_MODEL: 'env/model' })).toBe('flag/model')
  expect(existsSync(state)).toBe(false)
})
