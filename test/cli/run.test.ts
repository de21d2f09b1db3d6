import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { createInterrupts } from '../../src/host/interrupts.js'
import {
  createCliService,
  createCommandedEngine,
  createFamilyEngine,
  createHome,
  LOOPBACK_URL,
  ONE_PIXEL_PNG,
  objects,
  outputOf,
  type RunOptions,
  runCli,
  SET,
  scripted,
  temporaryFolder,
  usageErrorOf,
} from '../support/index.js'
import { ROOT } from '../support/project.js'
import { SCHEMAS } from '../support/schemas.js'

const FILE = join(ROOT, 'package.json')

it('run prints one URL a line, and the statuses of its runs on standard error', async () => {
  const service = await createCliService()
  const { code, stdout, stderr, opened } = await service.run('run image a red fox')
  expect({ code, opened }).toEqual({ code: 0, opened: [] })
  expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:1\/outputs\/\S+\n$/)
  expect(stderr).toMatch(/^(run_\w+: \w+ \(\d+ s\)\n)+$/)
  expect(service.creates()).toEqual([{ model: 'rushes/preview-image', input: { prompt: 'a red fox' } }])
})

it('run --json prints every key of a run, nothing on standard error, and sends the API key to the API alone', async () => {
  const service = await createCliService()
  const folder = temporaryFolder()
  const { code, stdout, stderr } = await service.run(
    `run image "a fox" --json -o ${folder}/{kind}-{index}.{ext}`,
  )
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const run = JSON.parse(stdout)
  expect(Object.keys(run)).toEqual(SCHEMAS.get('run')?.required)
  expect(run).toMatchObject({
    ...{ kind: 'image', model: 'rushes/preview-image', status: 'succeeded', error: null },
    files: [
      {
        ...{ path: `${folder}/image-1.png`, bytes: ONE_PIXEL_PNG.byteLength, content_type: 'image/png' },
        ...{ sha256: expect.stringMatching(/^[0-9a-f]{64}$/), url: run.output.urls[0] },
      },
    ],
  })
  expect(readFileSync(`${folder}/image-1.png`).equals(ONE_PIXEL_PNG)).toBe(true)
  const downloads = service.requests.filter(({ url }) => url.pathname.startsWith('/outputs/'))
  expect(downloads).toHaveLength(1)
  expect(JSON.stringify(downloads.map(({ headers }) => headers))).not.toContain(service.apiKey)
})

it('the reason of a failed run is clean on a terminal, and whole and escaped in JSON', async () => {
  const failed = { id: 'run_7', status: 'failed', error: { message: 'two\nlines \u001b[31mred' } }
  const answers = [
    { status: 201, body: { id: 'run_7' } },
    { status: 200, body: failed },
  ]
  const { stderr } = await createHome({ answers }).run('run image "a fox"')
  expect(stderr).toContain('The run failed: two lines [31mred\n')
  const { stdout } = await createHome({ answers }).run('run image "a fox" --json')
  expect(stdout).toContain('The run failed: two\\nlines \\u001b[31mred"')
})

it('run --no-wait prints ids at once, and wait takes them from standard input', async () => {
  const service = await createCliService()
  const ids = await service.create('-n 3')
  expect(ids).toEqual(Array(3).fill(expect.stringMatching(/^run_\w+$/)))
  const waited = await service.run('wait - --json', { stdin: ids.join('\n') })
  expect(waited.code).toBe(0)
  expect(objects(waited.stdout).map(({ id }) => id)).toEqual(ids)
})

it('run -o - writes the bytes of its output to standard output', async () => {
  const service = await createCliService()
  const { code, bytes } = await service.run('run image fox -o -')
  expect(code).toBe(0)
  expect(bytes.equals(ONE_PIXEL_PNG)).toBe(true)
})

it('run -o - of a run with two outputs names a command that downloads both', async () => {
  const service = await createCliService({ engine: createFamilyEngine({ outputs: 2 }) })
  const { code, stderr } = await service.run('run image fox -o -')
  expect(code).toBe(12)
  expect(stderr).toMatch(/Download its outputs with `rushes download run_\w+`/)
})

it('run refuses a file in the place of its output before anything is sent, and replaces it with --overwrite', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'fox.png')
  writeFileSync(path, 'mine')
  usageErrorOf(await service.run(`run image fox -o ${path}`))
  expect(service.requests).toEqual([])
  expect(readFileSync(path, 'utf8')).toBe('mine')
  outputOf(await service.run(`run image fox -o ${path} --overwrite`))
  expect(readFileSync(path).equals(ONE_PIXEL_PNG)).toBe(true)
})

it('run prints each status of its run once, and a line each minute while it waits', async () => {
  const service = await createCliService({ engine: createCommandedEngine() })
  const { code, stderr } = await service.run('run image fox --timeout 150s')
  expect(code).toBe(11)
  expect(stderr.match(/: processing/g)).toHaveLength(1)
  expect(stderr.match(/^still waiting for 1 of 1 run/gm)).toHaveLength(2)
  expect(stderr).toMatch(
    /error: (run_\w+) is still running after 2 min 30 s\.\n {2}Resume with `rushes wait \1`\.\n/,
  )
})

it('run of a run that fails ends with exit 10 and the reason, and prints its object; its download ends so too', async () => {
  const service = await createCliService({ engine: createFamilyEngine() })
  const { code, stdout, stderr } = await service.run('run image FAIL --json')
  expect(code).toBe(10)
  const run = JSON.parse(stdout)
  expect(run).toMatchObject({ status: 'failed', output: null, error: { code: 'run_failed' } })
  expect(JSON.parse(stderr).error).toMatchObject({
    ...{ code: 'run_failed', exit_code: 10, run_id: run.id },
    message: expect.stringContaining('cannot draw FAIL'),
  })
  expect(await service.run('download --last')).toMatchObject({ code: 10, stdout: '' })
})

const TERMINAL = { stdin: true, stderr: true }
const NO_ESTIMATE =
  'No estimate: the price of acme/still-1 is not known here. `rushes models --refresh` asks the service for it.'

/** Runs the command, and counts the runs that it creates. */
async function create(flags: string, options: Partial<RunOptions> = {}) {
  const { fetch, requests } = scripted({ status: 201, body: { id: 'r1', status: 'queued' } })
  // Without a spinner, which needs a real terminal.
  const env = { ...SET, TERM: 'dumb' }
  const ran = await runCli(`run image fox --no-wait -n ${flags}`, { fetch, env, ...options })
  return { ...ran, created: requests.length }
}

it.each([
  ['y\n', 0, 21],
  ['no\n', 2, 0],
  ['', 2, 0],
])(
  'more than 20 runs are created on a terminal only after the answer yes: %j',
  async (stdin, code, created) => {
    const ran = await create('21', { stdin, tty: TERMINAL })
    expect(ran).toMatchObject({ code, created, stdout: 'r1\n'.repeat(created) })
    expect(ran.stderr).toContain(`Create 21 runs of acme/still-1? ${NO_ESTIMATE} [y/N] `)
  },
)

it.each([
  ['20 runs', '20', TERMINAL],
  ['--yes', '21 --yes', TERMINAL],
  ['--json', '21 --json', TERMINAL],
  ['standard input from a pipe', '21', { stderr: true }],
  ['standard error in a file', '21', { stdin: true }],
])('no question is asked before creates with %s', async (_, flags, tty) => {
  const { code, stderr, created } = await create(flags, { tty })
  expect({ code, created }).toEqual({ code: 0, created: Number.parseInt(flags, 10) })
  expect(stderr).not.toContain('[y/N]')
})

it('more than 20 runs are announced where nobody can be asked', async () => {
  const announced = `Creating 21 runs of acme/still-1. ${NO_ESTIMATE}\n`
  expect((await create('21')).stderr.startsWith(announced)).toBe(true)
  for (const flags of ['20', '21 --yes', '21 --quiet'])
    expect((await create(flags)).stderr).not.toContain('Creating')
})

it('Ctrl-C at the question creates nothing', async () => {
  const interrupts = createInterrupts()
  interrupts.interrupt('SIGINT')
  expect(await create('21', { interrupts, tty: TERMINAL })).toMatchObject({ code: 130, created: 0 })
})

const tty = { stderr: true }
// Without a spinner, whose frames would be on standard error too.
const env = { TERM: 'dumb' }

it('the last line of run on a terminal has the files and the seconds', async () => {
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
  ['in a pipe', '', {}],
  ['with --quiet', '--quiet', tty],
  ['with --json', '--json', tty],
  ['with --no-wait', '--no-wait', tty],
])('run prints no last line %s', async (_, flag, streams) => {
  const service = await createCliService()
  const { stderr } = await service.run(`run image fox ${flag}`, { tty: streams, env })
  expect(stderr).not.toMatch(/done/i)
})

it.each<readonly [string, readonly string[], RegExp]>([
  [
    'several wrong values at once',
    ['--duration', '7', '--aspect-ratio', '16x9', 'fox'],
    /--aspect-ratio.*16:9.*--duration/,
  ],
  ['no prompt', [], /Missing prompt\.\n {2}Example: `rushes run video/],
  ['an empty prompt', ['  '], /prompt is empty/],
  ['two prompts', ['fox', '--prompt', 'dog'], /More than one prompt was given: the arguments and --prompt/],
  ['two users of standard input', ['-', '-i', '-'], /both read standard input/],
  ['nothing on standard input for the prompt', ['-'], /Standard input is empty.*Nothing was sent/],
  ['nothing on standard input for images', ['fox', '-i', '-'], /Standard input is empty.*Nothing was sent/],
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
])('%s is a usage error of run before anything is sent', async (_, argv, message) => {
  expect(usageErrorOf(await runCli(['run', 'video', ...argv], { env: SET, stdin: '' }))).toMatch(message)
})

it('a usage error with --json is one JSON object', async () => {
  const { error } = JSON.parse(usageErrorOf(await runCli('--json run video fox -n 0', { env: SET })))
  expect(error).toMatchObject({ code: 'usage', exit_code: 2, run_id: null, http_status: null })
})

it('run names all settings that are missing at once', async () => {
  expect(usageErrorOf(await runCli('run image fox'))).toMatchInlineSnapshot(`
    "error: Not set: service URL, image model, API key.
      Store the service URL and the key with \`rushes login --base-url <url>\`, or set the URL with --base-url <url>, RUSHES_BASE_URL or \`rushes config set baseUrl <url>\`. To try rushes without a service, or for local runs, add --local.
      Set the model with --model <provider/name>, RUSHES_IMAGE_MODEL or \`rushes config set models.image <provider/name>\`. A local service (\`rushes serve\`) has rushes/preview-image.
      Set the key with \`rushes login\`, RUSHES_API_KEY, RUSHES_API_KEY_FILE or RUSHES_API_KEY_COMMAND.
    "
  `)
})

it.each([
  ['--base-url http://example.com', 'insecure_url'],
  ['--base-url ftp://example.com', 'usage'],
  [`--local --base-url ${LOOPBACK_URL}`, 'usage'],
])('run with %s is an error with the code %s', async (flags, code) => {
  const ran = await runCli(`run image fox --json ${flags}`, { env: SET })
  expect(JSON.parse(usageErrorOf(ran)).error.code).toBe(code)
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
])('the words %j of a line are the prompt %j', async (argv, prompt) => {
  const { stdout, stderr } = await runCli(['run', 'image', '--local', '--dry-run', '--quiet', ...argv])
  expect(stderr).toBe('')
  expect(JSON.parse(stdout)).toEqual({ model: 'rushes/preview-image', input: { prompt } })
})

function* endless() {
  const chunk = Buffer.alloc(1024 * 1024, 'y\n')
  for (;;) yield chunk
}

it('an endless standard input is a usage error, and is read no further', async () => {
  const stdin = Readable.from(endless())
  expect(usageErrorOf(await runCli('run image -', { env: SET, stdin }))).toContain(
    'Standard input is too large; the limit is 64 MiB. Nothing was sent.',
  )
  expect(stdin.destroyed).toBe(true)
})

it('a signal ends a command that reads an endless standard input', async () => {
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

it('an input that is not UTF-8 is a usage error', async () => {
  const path = join(temporaryFolder(), 'input.json')
  writeFileSync(path, Buffer.from('{"prompt": "caf\xe9"}', 'latin1'))
  const ran = await runCli(`run image --dry-run --input @${path}`, { env: SET })
  expect(usageErrorOf(ran)).toContain(`error: ${path} is not UTF-8 text.`)
})

it('-i sends a file as a data: URL with the type of its bytes; -i - takes sources one a line, or the bytes of an image', async () => {
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

it('a flag goes before the environment and this before the config file, and an empty variable counts as unset', async () => {
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
