/** `rushes serve`: the lines about its console, the URLs that it accepts, and its start on a full disk. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished, test } from 'vitest'
import { consoleLines, createWhenDiskHasSpace } from '../../src/cli/commands/serve.js'
import { publicUrlOf, sizeOf } from '../../src/cli/flags/serve.js'
import { usageError } from '../../src/errors.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import {
  createHome,
  createInstantEngine,
  createManualClock,
  type Home,
  lines,
  runCli,
  usageErrorOf,
} from '../support/index.js'

it.each<[url: string, publicUrl: string | undefined, where: string, flags: string]>([
  ['http://127.0.0.1:7878', undefined, '', ''],
  ['http://127.0.0.1:8000', undefined, '', ' --public-url http://127.0.0.1:8000'],
  [
    'http://127.0.0.1:7878',
    'https://x.example/runs',
    ' --database <url>',
    ' --database <url> --public-url https://x.example/runs',
  ],
  ['http://127.0.0.1:8000', 'http://127.0.0.1:7878', '', ''],
])(
  'serve at %s with the public URL %s%s names the command for a sign-in link',
  (url, publicUrl, where, flags) => {
    expect(consoleLines(publicUrl ?? url, { linkToken: undefined }, where)).toEqual([
      `Console: ${publicUrl ?? url}/`,
      `To get a sign-in link: \`rushes admin user link <email>${flags}\`. Its users: \`rushes admin user list${where}\`.`,
    ])
  },
)

it('serve prints a sign-in link on the first start, and nothing without a console', () => {
  const base = 'http://127.0.0.1:8000'
  expect(consoleLines(base, { linkToken: 't' }, '')).toEqual([
    'Console: http://127.0.0.1:8000/link/t',
    'Single-use sign-in link; expires in 15 minutes.',
  ])
  expect(consoleLines(base, undefined, '')).toEqual([])
})

const TEXT = `- { name: acme/one, kind: image, engine: { type: preview } }
- { name: acme/two, kind: image, engine: { type: comfyui, url: http://127.0.0.1:1, workflow: none.json } }
- { name: acme/three, kind: image, default: true, engine: { type: preview } }
`

/** Starts the service, and stops it when it listens. */
async function serve({ run }: Home, ...words: readonly string[]) {
  const interrupts = createInterrupts()
  const ran = await run(['serve', '--port', '0', ...words], {
    interrupts,
    engine: createInstantEngine(),
    onStderr: (text) => text.includes('The API key') && interrupts.interrupt('SIGINT'),
  })
  return { ...ran, variables: Object.fromEntries(lines(ran.stdout).map((line) => line.slice(7).split('='))) }
}

async function serveModels(...words: readonly string[]) {
  const home = createHome({ env: {} })
  const path = join(home.home, 'models.yaml')
  writeFileSync(path, TEXT)
  return serve(home, '--no-console', '--models', path, ...words)
}

it('serve prints its key on the first start alone, then how to create another one; a start that fails leaves the key to the next one', async () => {
  const home = createHome({ env: {} })
  const data = join(home.home, 'my data')
  const other = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  for (const flag of ['--port', '--metrics-port'])
    expect(usageErrorOf(await home.run(['serve', '--port', '0', '--data', data, flag, `${port}`]))).toContain(
      `Port ${port} on 127.0.0.1 is in use.`,
    )
  const first = await serve(home, '--data', data)
  expect(first.stderr).toContain('The API key is shown only once.')
  const models = { RUSHES_IMAGE_MODEL: 'rushes/preview-image', RUSHES_VIDEO_MODEL: 'rushes/preview-video' }
  const RUSHES_BASE_URL = expect.stringMatching(/^http:/)
  const RUSHES_API_KEY = expect.stringMatching(/^rk_/)
  expect(first.variables).toEqual({ RUSHES_BASE_URL, RUSHES_API_KEY, ...models })
  const second = await serve(home, '--data', data)
  expect(second.stderr).toContain(`\`rushes admin key create --account default --data '${data}'\`.\n`)
  expect(second.variables).toEqual({ RUSHES_BASE_URL, ...models })
  const created = await home.run(['admin', 'key', 'create', '--account', 'default', '--data', data, '-q'])
  expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/^rk_\S+\n$/) })
})

it('serve has a console if its files are there, and none with --no-console', async () => {
  const warning = 'The console is off: its files are missing from this installation of rushes.'
  expect((await serve(createHome({ env: {} }))).stderr).toContain(warning)
  expect((await serve(createHome({ env: {} }), '--no-console')).stderr).not.toMatch(/console/i)
})

it('serve names the default models of --models, and as an API node needs no file of an engine', async () => {
  const { code, variables } = await serveModels('--role', 'api')
  expect({ code, variables }).toMatchObject({
    code: 0,
    variables: { RUSHES_IMAGE_MODEL: 'acme/three', RUSHES_VIDEO_MODEL: 'rushes/preview-video' },
  })
})

it('serve checks the models of --models before it listens', async () => {
  const { code, stderr } = await serveModels()
  expect(code).toBe(2)
  expect(stderr).toMatch(
    /models\.yaml: document 2: engine: workflow names "none\.json", which cannot be read: no such file/,
  )
  expect(stderr).not.toContain('Listening')
})

it.each([
  [['--engine', 'sound=x'], /--engine: "sound=x" must have the form/],
  [['--engine', 'video=a', '--engine', 'video=b'], /given twice for video/],
  [
    ['--engine', 'image=imags:http://127.0.0.1:1'],
    /type must be one of images, comfyui, .*Did you mean "images"\?/s,
  ],
  [['--models', '/none.yaml'], /\/none\.yaml: no such file/],
])('serve with %j is a usage error', async (words, message) => {
  expect(usageErrorOf(await runCli(['serve', '--port', '0', ...words]))).toMatch(message)
})

it('serve --host 0.0.0.0 says that it listens on all addresses', async () => {
  const { code, stderr } = await serve(createHome({ env: {} }), '--host', '0.0.0.0')
  expect(code).toBe(0)
  expect(stderr).toMatch(/Listening on all addresses of this machine, here http:\/\/127\.0\.0\.1:\d+\./)
})

it.each([
  ['64MiB', 64 * 1_048_576],
  ['1048576', 1_048_576],
])('--body-limit %s is %i bytes', (text, bytes) => expect(sizeOf(text)).toBe(bytes))

it.each(['', '0', '1.5MiB', '5MB', '5 apples'])('--body-limit %j is refused', (text) => {
  expect(() => sizeOf(text)).toThrow(/is not a valid size/)
})

it.each<[text: string, url: string]>([
  ['https://runs.example.com', 'https://runs.example.com'],
  ['HTTP://x.example:81/runs//', 'HTTP://x.example:81/runs'],
  ['http://[::1]:80/', 'http://[::1]:80'],
])('--public-url %s is %s', (text, url) => expect(publicUrlOf(text)).toBe(url))

it.each<[text: string, says: RegExp]>([
  ['ftp://x.example', /must be an http or https URL without/],
  ['https://x.exa\nmple', /must be an http or https URL without/],
  ['https://x.example?a=1', /must be an http or https URL without/],
  ['https://ann:secret@x.example', /must be an http or https URL without/],
  ['https://:secret@x.example', /must be an http or https URL without/],
])('--public-url %j is refused, and no password is printed', (text, message) => {
  const refused = () => publicUrlOf(text)
  expect(refused).toThrow(message)
  expect(refused).not.toThrow(/secret/)
  expect(refused).toThrow(
    expect.objectContaining({ code: 'usage', hint: expect.stringContaining('https://runs.example.com') }),
  )
})

function tried(failures: readonly Error[]) {
  const warnings: string[] = []
  const clock = createManualClock()
  const interrupt = new AbortController()
  let calls = 0
  const create = async () => {
    const failure = failures[calls++]
    if (failure !== undefined) throw failure
    return 'a service'
  }
  const context = {
    out: { warn: (text: string) => void warnings.push(text) },
    clock,
    interrupts: { first: interrupt.signal },
  } as unknown as Parameters<typeof createWhenDiskHasSpace>[0]
  const service = createWhenDiskHasSpace(context, '/data', create)
  return { service, warnings, clock, interrupt, calls: () => calls }
}

const withCause = (code: string) =>
  Object.assign(usageError('cannot be used'), { cause: Object.assign(new Error('full'), { code }) })

test('serve on a full disk starts when there is space, and says once that it waits', async () => {
  const { service, warnings, clock, calls } = tried([withCause('SQLITE_FULL'), withCause('ENOSPC')])
  expect(await clock.runUntil(service)).toBe('a service')
  expect(calls()).toBe(3)
  expect(warnings).toEqual(['The disk of /data is full. The service starts when there is space.'])
})

test('serve ends at once when its data cannot be used for another reason', async () => {
  for (const code of ['SQLITE_CORRUPT', 'SQLITE_IOERR', 'EACCES']) {
    const { service, warnings } = tried([withCause(code)])
    await expect(service).rejects.toThrow('cannot be used')
    expect(warnings).toEqual([])
  }
})

test('Ctrl-C ends serve while it waits for space', async () => {
  const { service, interrupt } = tried([withCause('ENOSPC')])
  const reason = new Error('interrupted')
  interrupt.abort(reason)
  await expect(service).rejects.toBe(reason)
})
